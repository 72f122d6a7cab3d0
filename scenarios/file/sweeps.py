"""``[sweep]`` and ``[[runs]]``: one scenario file for many scenarios, as a grid and as an explicit list."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from operator import eq
from typing import Any

from flmarket.core.printable import printable
from scenarios.file.addresses import AddressError, address, put
from scenarios.file.checks import Catalogue
from scenarios.file.problems import Finding, Path, key_text, number, shown
from scenarios.file.schema import MOST_SWEPT, Scenario
from scenarios.file.tables import plain
from scenarios.file.toml_text import value_text
from scenarios.file.validation import examine, read
from scenarios.file.wording import annotation_at, unknown_key

LARGEST_GRID = 10_000  # points of one sweep


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One scenario of a sweep."""

    values: Mapping[str, Any]  # what each swept key is at this point, in the file's order; empty without a sweep
    scenario: Scenario  # with these values, and without the sweep

    @property
    def label(self) -> str:
        """The values in words: ``clients.cores=2, services.mnist.budget=10``; empty without a sweep."""
        return label(self.values)


def label(values: Mapping[str, Any]) -> str:
    """Return the values of a point in words."""
    return ", ".join(f"{key}={value_text(value)}" for key, value in values.items())


def flatten(table: Mapping[str, Any], at: Path = ("sweep",)) -> tuple[dict[str, Any], dict[Path, Path], list[Finding]]:
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
                found.append(Finding((*at, *keys), f"is in the {at[0]} twice", see=places[*at, key]))
            else:
                flat[key] = value
                places[*at, key] = (*at, *keys)

    walk((), table)
    return flat, places, found


def check_sweep(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the sweep's keys, and with each value by itself."""
    sweep = data.get("sweep")
    if not isinstance(sweep, Mapping) or len(sweep) > MOST_SWEPT:
        return  # the schema reports it
    base = {key: value for key, value in data.items() if key not in ("sweep", "runs")}
    paths: dict[str, Path] = {}
    for key, values in sweep.items():
        if not isinstance(values, list | tuple):
            continue  # the schema reports it
        try:
            path = _swept_path(data, key)
        except AddressError as error:
            yield Finding(("sweep", key), str(error))
            continue
        paths[key] = path
        yield from _check_values(base, key, path, values)
    for (one, path), (other, longer) in combinations(sorted(paths.items(), key=lambda item: len(item[1])), 2):
        if longer[: len(path)] == path:
            yield Finding(("sweep", other), f"overlaps with {one}", see=("sweep", one))
    points = prod(len(values) for values in sweep.values() if isinstance(values, list | tuple))
    if points > LARGEST_GRID:
        yield Finding(("sweep",), f"makes {number(points)} scenarios; the limit is {number(LARGEST_GRID)}")


def check_runs(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the keys of ``[[runs]]``, and with each value by itself. As ``check_sweep``."""
    runs, sweep = data.get("runs"), data.get("sweep")
    base = {key: value for key, value in data.items() if key not in ("sweep", "runs")}
    for i, run in enumerate(runs if isinstance(runs, list | tuple) else ()):
        paths: dict[str, Path] = {}
        for key, value in run.items() if isinstance(run, Mapping) else ():
            place: Path = ("runs", i, key)
            try:
                path = paths[key] = _swept_path(data, key)
            except AddressError as error:
                yield Finding(place, str(error))
                continue
            if isinstance(sweep, Mapping) and key in sweep:
                yield Finding(place, "is swept too", see=("sweep", key))
            for finding in _check_value(base, path, value):
                yield Finding(place, finding.message)
        for (_, path), (other, longer) in combinations(sorted(paths.items(), key=lambda item: len(item[1])), 2):
            if longer[: len(path)] == path:
                yield Finding(("runs", i, other), "overlaps with another key of this run")


def _check_value(base: Mapping[str, Any], path: Path, value: Any) -> Iterator[Finding]:
    top, below = str(path[0]), path[1:]
    # Of the scenario, no more than the table that the value is in: there may be thousands of values, and of services.
    part = base.get(top)
    if below and isinstance(below[0], int):
        part, path = [base[top][below[0]]], (top, 0, *below[1:])
    data = {} if part is None else {top: deepcopy(part)}
    try:
        plain(value)
        put(data, path, value)
    except (ValueError, AddressError):
        return  # the schema reports it, or something on the way is broken, and reported where it stands
    yield from (finding for finding in read(data)[1] if finding.path[: len(path)] == path)


def _swept_path(data: Mapping[str, Any], key: str) -> Path:
    """Return where a swept key leads, if it leads to something that can be swept."""
    path = address(data, key)
    if path[0] in ("name", "description", "sweep", "runs") or (path[0] == "services" and path[-1] == "name"):
        raise AddressError("cannot be swept")
    for depth in range(1, len(path) + 1):
        if annotation_at(path[:depth]) is None:
            table = annotation_at(path[: depth - 1])
            if not hasattr(table, "model_fields"):
                raise AddressError(f"{path[depth - 2]} is not a table")
            raise AddressError(unknown_key(path[:depth]))
    return path


def _check_values(base: Mapping[str, Any], key: str, path: Path, values: Sequence[Any]) -> Iterator[Finding]:
    place: Path = ("sweep", key)
    if not values:
        yield Finding(place, "must not be empty")
    if len(values) > LARGEST_GRID:
        return  # the whole grid is too large, then
    seen: set[str] = set()
    for i, value in enumerate(values):
        try:
            plain(value)
        except ValueError:
            continue  # the schema reports it
        # 10 and 10.0 make the same scenario.
        text = value_text(float(value) if type(value) is int else value)
        if text in seen:
            yield Finding((*place, i), f"lists {shown(value)} twice")
            continue
        seen.add(text)
        for finding in _check_value(base, path, value):
            yield Finding((*place, i), finding.message)


def grid(scenario: Scenario, catalogue: Catalogue) -> Iterator[tuple[dict[str, Any], Scenario | None, list[Finding]]]:
    """Yield each run of a scenario at each point of its sweep, in the file's order, the last key changing fastest."""
    base = scenario.model_dump(exclude_none=True, exclude={"sweep", "runs"})
    for run, point in product(scenario.runs or ({},), product(*scenario.sweep.values())):
        values = {**run, **dict(zip(scenario.sweep, point, strict=True))}
        data = deepcopy(base)
        for key, value in values.items():
            put(data, address(base, key), value)
        yield values, *examine(data, catalogue)


def check_points(scenario: Scenario, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield what is wrong with combinations of a sweep's values, each fine by itself; equal problems once."""
    if not scenario.sweep and not scenario.runs:
        return
    size = prod(len(values) for values in scenario.sweep.values()) * max(1, len(scenario.runs))
    if size > LARGEST_GRID:
        yield Finding(("runs",), f"makes {number(size)} scenarios with the sweep; the limit is {number(LARGEST_GRID)}")
        return
    data = scenario.model_dump()
    keys = dict.fromkeys([*scenario.sweep, *(key for run in scenario.runs for key in run)])
    paths = {key: address(data, key) for key in keys}
    seen = set()
    for values, _, found in grid(scenario, catalogue):
        for finding in found:
            # Said at the swept key that is at fault, else at one that makes the fault of another key.
            at_fault = [key for key in values if all(map(eq, paths[key], finding.path))]
            key = next(iter(at_fault or values))
            message = (
                finding.message if at_fault else f"{key_text(finding.path, scenario.model_dump())}: {finding.message}"
            )
            if (key, message) not in seen:
                seen.add((key, message))
                place = ("sweep",) if key in scenario.sweep else ("runs", _first_with(scenario.runs, key, values[key]))
                yield Finding((*place, key), f"with {_short(label(values))}: {message}")


def _first_with(runs: Sequence[Mapping[str, Any]], key: str, value: Any) -> int:
    return next(i for i, run in enumerate(runs) if key in run and run[key] == value)


def _short(text: str) -> str:
    return printable(text if len(text) <= 200 else text[:197] + "...")
