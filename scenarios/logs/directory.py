"""Run directories, OUT/<scenario>-<hash8>/<policy>/seed-0003/, and how complete runs are recognised.

They hold scenario.toml (resolved), the logs rounds.csv, offers.csv and events.csv (and clients.csv and responses.csv,
where clients are not truthful, or respond), run.log, in an incomplete run checkpoint/, and meta.json, which is written
last: whether the run is complete, and the digests of all files.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from flmarket.core.errors import InputError
from flmarket.core.files import (
    WriteError,
    is_full,
    is_locked,
    lock,
    read_regular,
    require_folder,
    require_writable,
    write_durably,
    write_synced,
)
from flmarket.core.names import folder_problem
from scenarios.logs.columns import ALL_TABLES, TABLES
from scenarios.logs.digests import damage, misshapen, records, seal, unseal
from scenarios.logs.run_state import RunState
from scenarios.logs.writing import Mark, ReplacedError

META = "meta.json"
SCENARIO = "scenario.toml"
LOG = "run.log"
CHECKPOINT = "checkpoint"
FRESH = "choose another folder, or start over with the option fresh"
AGAIN = "to play this run again, remove its directory and give its `flmarket run` command once more"
NOT_A_RUN = "not a run directory; a run directory has a scenario.toml and the tables"
PLAY_CHANGED = "start over with the option fresh-changed, or choose another folder"
_SEALED = (SCENARIO, *(table.path(Path()).name for table in TABLES.values()), LOG)
"""The files of a complete run that meta.json keeps the digests of."""
_MAYBE = tuple(it.path(Path()).name for name, it in ALL_TABLES.items() if name not in TABLES)  # which some runs have
_RESULTS = {*(table.path(Path()).name for table in ALL_TABLES.values()), META, CHECKPOINT}
_FILES = {*_RESULTS, SCENARIO, LOG}
_HASHED = re.compile(r".+-[0-9a-f]{8}")


Fresh = bool | Literal["changed"]
"""The runs that start over: all, none, or those whose policies, agents or other plug-ins have changed since."""


class RunDirectoryError(InputError):
    """A run directory cannot be used; the message says which one, why, and what to do."""


def unwritable(path: Path, error: OSError) -> RunDirectoryError | WriteError:
    """Return the error for what cannot be written: a disk that is full fails a run, anything else is bad input.

    Once there is room again, the same command continues; where a folder cannot be written, it must be another command.
    """
    if is_full(error):
        return WriteError(path, error)
    return RunDirectoryError(f"{path}: cannot be written: {error.strerror}")


class ChangedError(RunDirectoryError):
    """A run was played, or begun, with a plug-in or an agent that is different now."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The directory of one run."""

    path: Path

    @classmethod
    def place(cls, out: Path, scenario: str, digest: str, policy: str, seed: int) -> "RunDirectory":
        if problem := folder_problem(scenario) or folder_problem(policy):
            raise RunDirectoryError(problem)
        return cls(out / f"{scenario}-{digest}" / policy / f"seed-{seed:04d}")

    @property
    def folder(self) -> Path:
        """The folder of all runs of its scenario, whatever links lead to the run, by the name that is no link."""
        given = Path(os.path.abspath(self.path)).parent.parent  # noqa: PTH100 - the run may have moved to another disk
        return (given if _HASHED.fullmatch(given.name) else self.path.resolve().parent.parent).resolve()

    @property
    def state(self) -> RunState:
        """As its files tell it, whether a process plays the run or not: waiting, incomplete, failed or complete."""
        if not (present := self._present()):
            return RunState.WAITING
        if META not in present:
            return RunState.INCOMPLETE
        return RunState.COMPLETE if self._recorded().get("status") == "complete" else RunState.FAILED

    def _present(self) -> set[str]:
        """Return the names of the run's files; a RunDirectoryError if there are others."""
        try:
            if not self.path.exists():
                return set()
            # A hidden file is half written, or an editor's, which shows a table (.~lock.rounds.csv#, .rounds.csv.swp).
            present = {it.name for it in self.path.iterdir() if not it.name.startswith(".") or it.is_dir()}
        except OSError as error:
            raise RunDirectoryError(f"{self.path}: cannot be read: {error.strerror}") from error
        if foreign := sorted(present - _FILES):
            raise RunDirectoryError(
                f"{self.path}: contains {foreign[0]!r}, which is not a file of a run; move it away, or choose another "
                "folder"
            )
        return present

    def meta(self) -> dict[str, Any]:
        """Return the content of meta.json; a complete run's has all that readers ask for."""
        meta = self._recorded()
        if meta.get("status") == "complete" and (problem := misshapen(meta)):
            raise RunDirectoryError(f"{self.path / META}: is damaged: {problem}; {AGAIN}")
        return meta

    def _recorded(self) -> dict[str, Any]:
        try:
            return unseal(read_regular(self.path / META))
        except OSError as error:
            raise RunDirectoryError(f"{self.path / META}: cannot be read: {error.strerror}; {AGAIN}") from error
        except ValueError as error:
            raise RunDirectoryError(f"{self.path / META}: is damaged: {error}; {AGAIN}") from error

    def unfinished(self) -> str:
        """Return why a run that is not complete has no results: ``failed: ...``, or ``interrupted``. As ``meta``."""
        if not (self.path / META).exists():
            return "interrupted, or still being played"
        return f"failed: {self.meta().get('error') or 'see run.log'}"

    def damage(self, *, digests: bool) -> list[str]:
        """Return a sentence for each file of a complete run that is not what meta.json records; none if all are."""
        meta = self.meta()
        more = [name for name in _MAYBE if name in meta["files"] or os.path.lexists(self.path / name)]
        return list(damage(self.path, (*_SEALED, *more), meta, growing=LOG, digests=digests))

    def require_whole(self, *, digests: bool) -> None:
        """Check that the files of a complete run are what meta.json records; see ``damage``."""
        if found := self.damage(digests=digests):
            raise RunDirectoryError(f"{found[0]}; {AGAIN}")

    def scenario_text(self) -> str:
        path = self.path / SCENARIO
        try:
            return read_regular(path).decode()
        except OSError as error:
            raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise RunDirectoryError(f"{path}: is not UTF-8 text; {AGAIN}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from playing the same run at the same time. The lock ends with the process."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise unwritable(Path(error.filename or self.path), error) from error
        try:
            if not lock(descriptor):
                raise RunDirectoryError(f"{self.path}: another process is playing this run")
            yield
        finally:
            os.close(descriptor)

    def being_played(self) -> bool:
        """Whether a process is playing the run. Where the file system has no locks, none seems to be."""
        return is_locked(self.path)

    def announce(self) -> None:
        """Make the directory of a run that will be played later, so that it is in sight; an empty one is no run."""
        with suppress(OSError):  # what cannot be written, the run itself says
            self.path.mkdir(parents=True, exist_ok=True)

    def prepare(
        self,
        scenario: str,  # the text of scenario.toml
        *,
        # start over what is there; with ``changed``, only a complete run, which the caller has found to have changed
        fresh: Fresh = False,
    ) -> None:
        """Make the directory ready for a run to begin, or for one of the same scenario to resume."""
        if fresh is True and self._present():  # whatever meta.json says: it may be damaged
            self._clear()
        state = self.state
        if fresh and state is RunState.COMPLETE:
            self._clear()
        elif state is RunState.COMPLETE:
            raise RunDirectoryError(f"{self.path}: contains a complete run; start over with the option fresh")
        elif state is not RunState.WAITING and self._begun(scenario):
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(Path(error.filename or self.path), error) from error
        try:
            write_durably(self.path / SCENARIO, scenario.encode())
        except WriteError as error:
            raise unwritable(error.path, error.error) from error

    def finish(self, meta: dict[str, Any], written: Mapping[str, Mark] | None = None) -> None:
        """Write meta.json in one step, so that it is either whole or absent, and drop a complete run's checkpoints.

        The size and digest of every other file go into it, so nothing may be written after this but to run.log. Tables
        must be what was written, where that is given by table.
        """
        try:
            files = records(self.path, (*_SEALED, *_MAYBE))
        except OSError as error:
            raise WriteError(self.path / META, error) from error
        for name, mark in (written or {}).items():
            if files.get((path := ALL_TABLES[name].path(self.path)).name) != asdict(mark):
                raise ReplacedError(path)
        content = seal(files, meta)
        write_durably(self.path / META, content)
        if meta.get("status") == "complete":
            self.drop_checkpoints()

    def drop_checkpoints(self) -> None:
        """Remove the checkpoints of a complete run; a process that was killed at the last moment leaves them."""
        shutil.rmtree(self.path / CHECKPOINT, ignore_errors=True)

    def replace(self, files: Mapping[str, bytes]) -> None:
        """Replace an unfinished run by the files of one that was played elsewhere; meta.json comes last."""
        self._clear()
        for name in sorted(files, key=lambda name: (name == META, name != SCENARIO)):
            if name in (META, SCENARIO):
                write_durably(self.path / name, files[name])
            else:  # without meta.json a part of it is no harm, and half the waiting for the disk is saved
                write_synced(self.path / name, files[name])

    def _begun(self, scenario: str) -> bool:
        """Whether there is an unfinished run of this scenario; raise RunDirectoryError if there is another one's."""
        path = self.path / SCENARIO
        try:
            if not path.exists():
                if found := sorted({entry.name for entry in self.path.iterdir()} & _RESULTS):
                    raise RunDirectoryError(
                        f"{self.path}: contains {found[0]} but no {SCENARIO}, so it is not a run directory; {FRESH}"
                    )
                return False
            same = read_regular(path).decode(errors="replace") == scenario
        except OSError as error:
            raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from error
        if not same:
            raise RunDirectoryError(f"{path}: contains an interrupted run of another scenario; {FRESH}")
        return True

    def _clear(self) -> None:
        try:
            # meta.json first and scenario.toml last: if this is cut short, it leaves an unfinished run.
            for entry in sorted(self.path.iterdir(), key=lambda entry: (entry.name != META, entry.name == SCENARIO)):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError as error:
            raise RunDirectoryError(f"{error.filename or self.path}: cannot be removed: {error.strerror}") from error


def require_outside_runs(path: Path) -> None:
    """Refuse a file that the user named for results and that would be in the directory of a run, or below it.

    Whatever else stands in one makes it unusable, and ``flmarket export RUN --csv RUN/rounds.csv`` would replace a log.
    """
    _require_no_run(path, Path(os.path.realpath(path)).parent)


def require_place(path: Path) -> None:
    """Check a file that the user named for results before the work that they are results of. Nothing is changed."""
    require_outside_runs(path)
    require_writable(path)


def require_folder_place(path: Path) -> None:
    """Check a folder that the user named for results, as ``require_place`` does a file; it is made if need be."""
    _require_no_run(path, Path(os.path.realpath(path)))
    require_folder(path)


def _require_no_run(path: Path, real: Path) -> None:
    for folder in (real, *real.parents):
        if (folder / SCENARIO).exists() and any((folder / name).exists() for name in (META, LOG)):
            raise InputError(
                f"{path}: {folder} is the directory of a run, in which nothing else is kept; choose another"
            )
