"""``[sweep]`` and ``[[runs]]``: one scenario file for many scenarios, as a grid and as an explicit list."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import permutations, product
from math import prod
from operator import eq
from typing import Any

from scenarios.file.checks import Catalogue, examine
from scenarios.file.key_mistakes import unknown_key
from scenarios.file.keys import Key, schema_at
from scenarios.file.keys import keys as keys_of
from scenarios.file.overrides import (
    COUNT,
    EVERY_SERVICE,
    GROUPS,
    AddressError,
    addresses,
    group_names,
    put,
    service_names,
    stream_names,
)
from scenarios.file.problems import NAMED, Mistake, Path, key_text, number, shown
from scenarios.file.schema import Scenario
from scenarios.file.toml import value_text

LARGEST_GRID = 10_000  # points of one sweep
MOST_PROBLEMS = 100  # shown of one sweep


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One scenario of a sweep."""

    values: Mapping[str, Any]  # what each swept key is at this point, in the file's order; empty without a sweep
    scenario: Scenario  # with these values, and without the sweep

    @property
    def label(self) -> str:
        """The values in words: ``clients.cores=2, services.mnist.budget=10``; empty without a sweep."""
        return ", ".join(f"{key}={value_text(value)}" for key, value in self.values.items())


def flatten(table: Mapping[str, Any], at: Path = ("sweep",)) -> tuple[dict[str, Any], dict[Path, Path], list[Mistake]]:
    """Return a sweep, or a table of ``[[runs]]``, whose keys are dotted, from one that may use tables for them."""
    flat: dict[str, Any] = {}
    places: dict[Path, Path] = {}
    found = []

    def walk(prefix: tuple[str, ...], below: Mapping[str, Any]) -> None:
        for part, value in below.items():
            keys = (*prefix, part)
            key = ".".join(keys)
            if isinstance(value, Mapping):
                walk(keys, value)
            elif key in flat:
                found.append(Mistake((*at, *keys), f"is in the {at[0]} twice", see=places[*at, key]))
            else:
                flat[key] = value
                places[*at, key] = (*at, *keys)

    walk((), table)
    return flat, places, found


def examine_points(scenario: Scenario, catalogue: Catalogue) -> tuple[list[SweepPoint], list[Mistake]]:
    """Return every scenario of a sweep and of ``[[runs]]``, and what is wrong with them; equal problems once.

    Runs stand in the file's order; within one, the last key of the sweep changes fastest.
    """
    data = scenario.model_dump(exclude_none=True)
    if found := [*_key_problems(scenario, data)]:
        return [], found
    base = {key: value for key, value in data.items() if key not in ("sweep", "runs")}
    points = []
    seen: dict[tuple[str, str], Mistake] = {}
    for places in _grid(scenario):
        values = {key: value for key, (_, value) in places.items()}
        changed = deepcopy(base)
        changed["services"] = changed["services"][: values.get(COUNT, LARGEST_GRID)]
        point, found = None, []
        try:
            for key in values:
                for path in addresses(changed, key) if key != COUNT else ():
                    put(changed, path, values[key])
            point, found = examine(changed, catalogue)
        except AddressError as error:  # a service that is not among the first ones
            found = [Mistake((COUNT,), str(error))]
        if point:
            points.append(SweepPoint(values, point))
        for finding in found:
            # Said at the swept key that is at fault, else at one that makes the fault of another key.
            at_fault = [key for key in values if any(all(map(eq, path, finding.path)) for path in _paths(base, key))]
            key = next(iter(at_fault or values))
            message = finding.message if at_fault else f"{key_text(finding.path, base)}: {finding.message}"
            label = SweepPoint(values, scenario).label
            seen.setdefault((key, message), Mistake(places[key][0], f"with {label[:200]}: {message}"))
        if len(seen) >= MOST_PROBLEMS:
            break
    return points, list(seen.values())


def _grid(scenario: Scenario) -> Iterator[dict[str, tuple[Path, Any]]]:
    """Yield the place and the value of each swept key at each point."""
    runs: list[dict[str, tuple[Path, Any]]] = [
        {key: (("runs", i, key), value) for key, value in run.items()} for i, run in enumerate(scenario.runs)
    ]
    swept = [
        [(key, (("sweep", key, i), value)) for i, value in enumerate(values)] for key, values in scenario.sweep.items()
    ]
    for run, point in product(runs or [{}], product(*swept)):
        yield {**run, **dict(point)}


def _key_problems(scenario: Scenario, data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with the keys of a sweep and of ``[[runs]]``, whatever their values."""
    size = prod(map(len, scenario.sweep.values())) * max(1, len(scenario.runs))
    if size > LARGEST_GRID:
        yield Mistake(("sweep",), f"makes {number(size)} scenarios; the limit is {number(LARGEST_GRID)}")
        return
    for key, values in scenario.sweep.items():
        for i, value in enumerate(values):
            if value in values[:i]:
                yield Mistake(("sweep", key, i), f"lists {shown(value)} twice")
    for place, value in (places[COUNT] for places in _grid(scenario) if COUNT in places):
        if type(value) is not int or not 1 <= value <= scenario.listed:
            yield Mistake(place, f"must be 1 to {scenario.listed}: the first services of the file are taken")
    yield from _keys(data, ("sweep",), scenario.sweep)
    for i, run in enumerate(scenario.runs):
        yield from _keys(data, ("runs", i), run)
        for key in run.keys() & scenario.sweep.keys():
            yield Mistake(("runs", i, key), "is swept too", see=("sweep", key))


def sweepable(data: Mapping[str, Any]) -> dict[str, tuple[Key, Path]]:
    """Return the keys that a sweep of a scenario may have, valid or not: what each is, and where one such value is."""
    count = Key(("count",), {"description": "Services, the first ones of the file."}, required=True)
    found: dict[str, tuple[Key, Path]] = {COUNT: (count, (COUNT,))}
    tables: dict[str, Path] = {"": (), EVERY_SERVICE: ("services", 0)}
    tables |= {f"services.{name}.": ("services", place) for name, place in service_names(data).items()}
    tables |= {f"streams.{name}.": ("streams", place) for name, place in stream_names(data).items()}
    tables |= {f"{GROUPS}{name}.": ("clients", "groups", place) for name, place in group_names(data).items()}
    for above, table in tables.items():
        for key in keys_of(table):
            with suppress(AddressError):  # it cannot be swept
                found[f"{above}{key.label}"] = key, _swept((*table, *key.path))
    return found


def _keys(data: Mapping[str, Any], at: Path, keys: Iterable[str]) -> Iterator[Mistake]:
    paths: dict[str, list[Path]] = {}
    for key in keys:
        try:
            paths[key] = [_swept(path) for path in _paths(data, key)]
        except AddressError as error:
            yield Mistake((*at, key), str(error))
    for (one, some), (other, others) in permutations(paths.items(), 2):
        if any(longer[: len(path)] == path for path in some for longer in others):
            yield Mistake((*at, other), f"overlaps with {one}", see=(*at, one))


def _paths(data: Mapping[str, Any], key: str) -> list[Path]:
    return [(COUNT,)] if key == COUNT else addresses(data, key)


def _swept(path: Path) -> Path:
    """Return where a swept key leads, if it leads to something that can be swept."""
    if path == (COUNT,):
        return path
    if path[0] in ("name", "description", "sweep", "runs") or (path[:-2] in NAMED and path[-1] == "name"):
        raise AddressError("cannot be swept")
    for depth in range(1, len(path) + 1):
        if schema_at(path[:depth]) is None:
            if "properties" not in (schema_at(path[: depth - 1]) or {}):
                raise AddressError(f"{path[depth - 2]} is not a table")
            raise AddressError(unknown_key(path[:depth]))
    return path
