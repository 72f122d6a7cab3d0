"""Checkpoints: what a run needs to resume after it was killed, at most five seconds of work apart.

checkpoint/00000012.safetensors holds global models and what policies remember; 00000012.json the market, how far the
tables were written, and the checksums of all of these and of itself. Each file is whole or absent; the JSON is written
last. The last two are kept, so that damage to one costs some seconds of work. Nothing is ever unpickled.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from fl.arrays import AnyArray
from flmarket.core.errors import RunError
from flmarket.core.files import WriteError, read_regular, write_durably
from flmarket.core.plugin_errors import method
from learning.policy import Policy
from scenarios.build import Setup
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import FRESH, PLAY_CHANGED, ChangedError, RunDirectoryError
from scenarios.logs.table import Table
from scenarios.logs.writing import Mark, TableWriter
from scenarios.plugin_files import other_version
from scenarios.running.batch_run import Callback, Played, Run

INTERVAL = 5.0  # seconds of work between two checkpoints, at most; a round that takes longer ends with one

KEPT = 2

_LARGEST_NUMBER = 8  # bytes: what safetensors can hold

Arrays = Mapping[str, AnyArray]


class DamagedError(Exception):
    """A checkpoint, or the table it belongs to, is not what was written."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run between two rounds."""

    identity: Mapping[str, Any]  # what must be equal in the run that resumes: seed, policy, versions, kernels
    market: Mapping[str, Any]  # see ``Market.state``
    marks: Mapping[str, Mark]  # how far each table was written
    seconds: float  # work so far, in all processes together
    arrays: Arrays  # the arrays of the federation (``federation/...``) and of the policies (``policy/<service>/...``)

    @classmethod
    def take(cls, setup: Setup, marks: Mapping[str, Mark], identity: Mapping[str, Any], seconds: float) -> "Checkpoint":
        """Return a checkpoint of a run that is between rounds, or has ended."""
        arrays = {f"federation/{name}": array for name, array in setup.federation.state().items()}
        for service, policy in setup.policies.items():
            arrays |= {f"policy/{service}/{name}": array for name, array in _state(policy, service)}
        return cls(identity, setup.market.state(), marks, seconds, arrays)

    def apply(self, setup: Setup) -> None:
        """Let a run that has not begun resume from here; a DamagedError if it is another run's."""
        setup.seats.resume(self.round)
        try:
            setup.federation.restore(_below("federation/", self.arrays))
            setup.market.restore(self.market)
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise DamagedError(f"the checkpoint of round {self.round} does not fit the run: {error!r}") from error
        for service, policy in setup.policies.items():
            policy.restore(_below(f"policy/{service}/", self.arrays))

    @property
    def round(self) -> int:
        return int(self.market["round"])


def _state(policy: Policy, service: str) -> Iterator[tuple[str, AnyArray]]:
    """Yield the arrays of a policy's state by name; numbers and truth values can be stored, objects and text cannot."""
    where = f"policy of service {service!r}: {method(policy, 'state')}"
    state: object = policy.state()
    if not isinstance(state, Mapping):
        raise RunError(f"{where} must return a dict of arrays by name, not {type(state).__name__}")
    for name, value in state.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > _LARGEST_NUMBER:
            raise RunError(f"{where}: its array {name!r} is of {array.dtype}; use numbers or truth values")
        yield str(name), array


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, and remove all but the newest ones."""
    arrays = save_arrays(dict(checkpoint.arrays))
    body = {
        "identity": checkpoint.identity,
        "market": checkpoint.market,
        "tables": {table: {"size": mark.size, "sha256": mark.sha256} for table, mark in checkpoint.marks.items()},
        "seconds": round(checkpoint.seconds, 3),
        "arrays": hashlib.sha256(arrays).hexdigest(),
    }
    content = json.dumps({"sha256": _digest(body), **body}, indent=1, sort_keys=True)
    name = f"{checkpoint.round:08d}"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(folder, error) from error
    write_durably(folder / f"{name}.safetensors", arrays)
    write_durably(folder / f"{name}.json", content.encode())
    kept = {path.stem for path in _complete(folder)[:KEPT]}
    for path in folder.glob("[0-9]*"):
        if path.stem not in kept:
            path.unlink(missing_ok=True)


def candidates(folder: Path, identity: Mapping[str, Any]) -> Iterator[Checkpoint]:
    """Yield the checkpoints of an interrupted run that are whole, the newest first."""
    for path in _complete(folder):
        try:
            checkpoint = _read(path)
        except DamagedError:
            continue
        for key, value in identity.items():
            if (other := checkpoint.identity.get(key)) != value:
                changed = key in ("agents", "plugins")
                remedy = PLAY_CHANGED if changed else FRESH
                raise (ChangedError if changed else RunDirectoryError)(
                    f"{folder.parent}: contains an interrupted run with {_difference(key, other, value)}, so its "
                    f"results could not be the same; {remedy}"
                )
        yield checkpoint


def _difference(key: str, before: Any, now: Any) -> str:
    """Return in words what an interrupted run was begun with that is another one now."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return f"another {key} ({before}, here {now})"
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if key == "plugins":
        return other_version(changed[0])
    if key == "agents":
        return "another learned agent"
    return f"other {key} ({', '.join(f'{name} {before.get(name)}, here {now.get(name)}' for name in changed)})"


def resume(
    folder: Path,  # the folder of the checkpoints, inside the run's directory
    identity: Mapping[str, Any],  # see ``Checkpoint``
    setup: Setup,  # a run that has not begun
    own: Mapping[str, Table],  # its tables, by name
    warn: Callable[[str], None],  # called with a message for each checkpoint that cannot be used
) -> tuple[TableWriter, Checkpoint | None]:
    """Open a run's tables, and bring it to where its newest usable checkpoint was taken, or else to its start."""
    for checkpoint in candidates(folder, identity):
        try:
            tables = TableWriter(folder.parent, checkpoint.marks, own)
        except ValueError as error:
            warn(f"the checkpoint of round {checkpoint.round} cannot be used: {error}")
            continue
        try:
            checkpoint.apply(setup)
        except DamagedError as error:
            raise RunDirectoryError(f"{folder}: {error}; start over with the option fresh") from error
        return tables, checkpoint
    if _complete(folder):
        raise RunDirectoryError(
            f"{folder}: every checkpoint, or a table that belongs to it, is damaged; start over with the option fresh"
        )
    for table in ALL_TABLES:  # of a run that was interrupted before its first checkpoint
        (folder.parent / f"{table}.csv").unlink(missing_ok=True)
    return TableWriter(folder.parent, tables=own), None


class Checkpointer(Callback):
    """Saves checkpoints while a run is played."""

    def __init__(
        self,
        folder: Path,
        setup: Setup,
        tables: TableWriter,
        identity: Mapping[str, Any],
        seconds: Callable[[], float],
    ) -> None:
        """Save to ``folder``; ``seconds`` returns for how long the run has worked."""
        self._folder, self._setup, self._tables, self._identity = folder, setup, tables, identity
        self._seconds = seconds
        self._saved = self._last = time.monotonic()
        self._played, self._possible = dict(setup.policies), resumable(setup)

    def after_round(self, run: Run, report: Played) -> None:
        """Save a checkpoint if the next round could end more than ``INTERVAL`` after the last one."""
        now = time.monotonic()
        next_end = now + (now - self._last)
        self._last = now
        if not report.last and next_end - self._saved >= INTERVAL:
            self.save()

    def save(self) -> None:
        """Save a checkpoint, if the policies can be saved."""
        if self._setup.policies != self._played:  # one began in the middle of the run
            self._played, self._possible = dict(self._setup.policies), resumable(self._setup)
        if not self._possible:
            return
        save(self._folder, Checkpoint.take(self._setup, self._tables.sync(), self._identity, self._seconds()))
        self._saved = self._last = time.monotonic()


def resumable(setup: Setup) -> bool:
    """Return whether a run can be saved and resumed: whether all of its policies can."""
    return all(policy.resumable for policy in setup.policies.values())


def _complete(folder: Path) -> list[Path]:
    """Return the JSON files of all checkpoints, the newest first. A file that is being written starts with a dot."""
    return sorted(folder.glob("[0-9]*.json"), reverse=True)


def _read(path: Path) -> Checkpoint:
    try:
        body = json.loads(read_regular(path, None))
        if body.pop("sha256") != _digest(body):
            raise DamagedError(f"{path}: checksum mismatch")
        arrays = read_regular(path.with_suffix(".safetensors"), None)
        if hashlib.sha256(arrays).hexdigest() != body["arrays"]:
            raise DamagedError(f"{path.with_suffix('.safetensors')}: checksum mismatch")
        marks = {table: Mark(int(mark["size"]), str(mark["sha256"])) for table, mark in body["tables"].items()}
        identity, market = dict(body["identity"]), {**body["market"], "round": int(body["market"]["round"])}
        return Checkpoint(identity, market, marks, float(body["seconds"]), load_arrays(arrays))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise DamagedError(f"{path}: {error}") from error


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _below(prefix: str, arrays: Arrays) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
