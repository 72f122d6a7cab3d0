"""Run directories: where a run's results live, and what says whether they are complete.

OUT/<scenario>-<hash8>/<policy>/seed-0003/
scenario.toml   the resolved scenario          rounds.csv, offers.csv, events.csv   the logs
run.log         what happened, with times      meta.json   written last: a run is complete when it says so
"""

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fl.errors import InputError

AS_CONFIGURED = "as-configured"
META = "meta.json"
SCENARIO = "scenario.toml"
LOG = "run.log"
_PART = f".{META}.part"
_OWN_FILES = {SCENARIO, "rounds.csv", "offers.csv", "events.csv", META, LOG, _PART}


class StoreError(InputError):
    """A run directory can't be used; says which, why, and what to do."""


class State(Enum):
    """What a run directory holds."""

    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The directory of one run."""

    path: Path

    @classmethod
    def place(cls, out: Path, scenario: str, digest: str, policy: str, seed: int) -> "RunDirectory":
        """Return the directory that belongs to a run."""
        return cls(out / f"{scenario}-{digest}" / policy / f"seed-{seed:04d}")

    @property
    def state(self) -> State:
        """Whether the run is there, and complete.

        Raises:
            StoreError: the path is not a run directory of ours, or can't be read.
        """
        try:
            if not self.path.exists():
                return State.ABSENT
            present = {entry.name for entry in self.path.iterdir()}
        except OSError as error:
            raise StoreError(f"{self.path}: can't be read: {error.strerror}") from error
        if not present:
            return State.ABSENT
        if foreign := sorted(present - _OWN_FILES):
            raise StoreError(f"{self.path}: holds {foreign[0]!r}, which is not of a run; choose another --out")
        return State.COMPLETE if META in present and self.meta().get("status") == "complete" else State.INCOMPLETE

    def meta(self) -> dict[str, Any]:
        """Return what meta.json says.

        Raises:
            StoreError: it can't be read.
        """
        try:
            loaded = json.loads((self.path / META).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / META}: can't be read: {error}; run again with --fresh") from error
        if not isinstance(loaded, dict):
            raise StoreError(f"{self.path / META}: holds no table; run again with --fresh")
        return loaded

    def prepare(self, scenario: str, *, fresh: bool = False) -> None:
        """Make the directory ready for a new run and write its scenario.

        Raises:
            StoreError: it holds an unfinished run and ``fresh`` is not set, or can't be written.
        """
        if self.state is not State.ABSENT:
            if not fresh:
                raise StoreError(f"{self.path}: holds an unfinished run; run again with --fresh to start it over")
            self._clear()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / SCENARIO).write_text(scenario, encoding="utf-8", newline="\n")
        except OSError as error:
            raise StoreError(f"{error.filename or self.path}: can't be written: {error.strerror}") from error

    def finish(self, meta: dict[str, Any]) -> None:
        """Write meta.json in one step, so that it is either whole or absent."""
        part = self.path / _PART
        with part.open("w", encoding="utf-8", newline="\n") as file:
            json.dump(meta, file, indent=2, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / META)

    def _clear(self) -> None:
        try:
            shutil.rmtree(self.path)
        except OSError as error:
            raise StoreError(f"{error.filename or self.path}: can't be removed: {error.strerror}") from error


def find_runs(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the run directories among and below the given directories, in the order of their paths.

    Raises:
        InputError: a source does not exist or is no directory.
    """
    found: list[RunDirectory] = []
    for source in sources:
        if not source.is_dir():
            raise InputError(f"{source}: there is no such directory")
        found += (RunDirectory(path.parent) for path in sorted(source.rglob(META)))
    return list(dict.fromkeys(found))


def parse_seeds(text: str) -> list[int]:
    """Read ``--seeds``: ``10`` means 0 to 9, ``0,3,7`` and ``0..9`` mean what they say, and may be mixed.

    Raises:
        InputError: says what is wrong.
    """
    if re.fullmatch(r"\d{1,6}", text.strip()):
        count = int(text)
        if count < 1:
            raise InputError("--seeds 0 asks for no run; a single number N means the seeds 0 to N-1")
        return list(range(count))
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\.\.(\d{1,9}))?\s*", part)
        if not match:
            raise InputError(f"--seeds {text!r}: {part!r} is neither a seed (3) nor a range (0..9)")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"--seeds {text!r}: the range {part.strip()} runs backwards")
        if last - first > 1_000_000:
            raise InputError(f"--seeds {text!r}: the range {part.strip()} has more than 1,000,000 seeds")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
