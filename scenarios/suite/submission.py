"""Submission files: what one agent or policy reached in the suite, as JSON that others can read without playing."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fl.errors import InputError
from fl.files import asked_for, require_writable
from fl.locks import alone_in
from fl.names import did_you_mean
from scenarios.logs.outside import require_outside_runs
from scenarios.plugins import Records
from scenarios.suite.frozen import Cell, Suite

FORMAT = 1  # of the file

_KINDS: Mapping[str, Any] = {
    "suite": int,
    "digest": str,
    "method": str,
    "policy": str,
    "agent": str | None,
    "plugins": dict,
    "privileged": bool,
    "flmarket": str,
    "results": dict,
}
"""What the file says, and the type of each."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What was played, by whom."""

    method: str  # its name in tables; submissions of one name are trainings of one method with different seeds
    policy: str  # the policy's name
    agent: str | None  # SHA-256 of what it has learned; None if it loads nothing
    plugins: Records  # the plug-ins that it needs, with their SHA-256
    privileged: bool  # whether it sees what the paper hides
    flmarket: str  # the version that played
    suite: int  # the suite's version
    digest: str  # of the suite
    results: Mapping[Cell, float]  # the AUC of each run

    def with_results(self, found: Mapping[Cell, float]) -> "Submission":
        """Return the submission with more results."""
        return replace(self, results={**self.results, **found})

    def continues(self, other: "Submission") -> bool:
        """Return whether this is of the very thing that the other one is of, so that results can be put together."""
        return replace(self, results={}) == replace(other, results={})

    def text(self, suite: Suite) -> str:
        """Return the file's content: a line for each seat, in the suite's order."""
        order = {cell: place for place, cell in enumerate(suite.cells())}
        places: dict[str, dict[str, float]] = {}
        for cell in sorted(self.results, key=order.__getitem__):
            places.setdefault(cell.place, {})[str(cell.seed)] = self.results[cell]
        head: dict[str, Any] = {"format": FORMAT, **{key: getattr(self, key) for key in _KINDS if key != "results"}}
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        found = ",\n".join(f"    {json.dumps(place)}: {json.dumps(aucs)}" for place, aucs in places.items())
        return "{\n" + ",\n".join(lines) + ',\n  "results": {\n' + found + "\n  }\n}\n"

    def write(self, path: Path, suite: Suite) -> None:
        """Write the file, in one step. Errors as in ``prepare``."""
        _make_folder(path)
        with asked_for(path) as file:
            file.write(self.text(suite))


def prepare(path: Path) -> None:
    """Make the folder of a submission's file, before anything is played for it."""
    require_outside_runs(path)
    with alone_with(path):  # or the file that another process is writing would be in the way
        require_writable(path)


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the folder of a submission's file, which is made."""
    _make_folder(path)
    with alone_in(path.parent):
        yield


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be created: {error.strerror}; choose another --out") from error


def read(path: Path, suite: Suite) -> Submission:
    try:
        found = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except KeyError as error:
        raise InputError(f"{path}: {error} is there twice; leave one of them out") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise InputError(f"{path}: is no submission: not JSON") from None
    try:
        return _submission(found, suite)
    except ValueError as error:
        raise InputError(f"{path}: is no submission that can be compared: {error}") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; a KeyError names a key that it has twice, of which json would drop the first."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise KeyError(key)
        found[key] = value
    return found


def read_all(places: Iterable[Path], suite: Suite) -> list[Submission]:
    """Read the submissions among some files, and all in some folders, in the order of their paths."""
    places = list(places)
    paths = [path for place in places for path in (sorted(place.glob("*.json")) if place.is_dir() else [place])]
    if not paths:
        named = ", ".join(map(str, places))
        raise InputError(f"{named}: no submissions; `flmarket suite POLICY --out FOLDER` makes them")
    return [read(path, suite) for path in dict.fromkeys(paths)]


def _submission(found: object, suite: Suite) -> Submission:
    """Return a submission, or raise a ValueError that says what is wrong."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"not of format {FORMAT}")
    if others := sorted(found.keys() - {"format", *_KINDS}):
        raise ValueError(f"unknown key {others[0]!r}{did_you_mean(others[0], [*_KINDS])}")
    if wrong := [key for key, kind in _KINDS.items() if not isinstance(found.get(key), kind)]:
        raise ValueError(f"{wrong[0]} is missing, or of another type")
    if (found["suite"], found["digest"]) != (suite.version, suite.digest):
        raise ValueError(f"played on another suite than version {suite.version}, digest {suite.digest[:16]}")
    if not found["method"].strip() or not found["method"].isprintable():
        raise ValueError("method must be a name: printable text on one line")
    return Submission(**{key: found[key] for key in _KINDS} | {"results": dict(_results(found["results"], suite))})


def _results(found: Mapping[str, object], suite: Suite) -> Iterable[tuple[Cell, float]]:
    for place, aucs in found.items():
        if not isinstance(aucs, dict) or place.count("/") != 2:
            raise ValueError(f"results: {place!r} must be MARKET/MODE/SEAT with a table of seeds")
        if not aucs:
            raise ValueError(f"results: {place!r} has no seeds")
        for seed, auc in aucs.items():
            market, mode, seat = place.split("/")
            cell = Cell(market, mode, seat, int(seed) if seed.isdecimal() else -1)
            if cell not in suite.known or str(cell.seed) != seed:  # 07101 is no seed's name
                raise ValueError(f"results: the suite has no run {place}, seed {seed}")
            if isinstance(auc, bool) or not isinstance(auc, int | float) or not 0 <= auc <= 1:
                raise ValueError(f"results: {place}, seed {seed}: {auc!r} is no accuracy")
            yield cell, float(auc)
