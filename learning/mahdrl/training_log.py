"""The training log: a CSV file that a resumed training continues byte for byte."""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

from fl.locks import lock
from learning.mahdrl.checkpoint import CheckpointError


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the training log. All are means over the learners; of an evaluation, also over markets and seats."""

    episode: int  # number of the episode, from 1
    phase: str  # ``train`` or ``evaluate``
    epsilon: float  # probability of a random action
    reward: float  # mean over all rounds of Omega^accuracy / Omega^target, held once the target is met
    auc: float  # mean accuracy over all rounds, held once the target is met
    reached: float  # share of services that met their target
    markup: float  # how much more than the bids was offered, as a part of the bids
    losses: Mapping[str, float]  # by name; empty for evaluations


LOG_COLUMNS = (
    "episode",
    "phase",
    "epsilon",
    "reward",
    "auc",
    "reached",
    "markup",
    "critic_loss",
    "actor_loss",
    "win_loss",
)


class TrainingLog:
    """Writes the training log. It holds no times, so that a resumed training writes the same bytes."""

    def __init__(
        self,
        path: Path,  # the file
        # bytes of it to keep, all that was written when the state that is resumed was saved; 0 for a new log
        start: int,
        episode: int = 0,  # the last one of these, with an evaluation; 0: what is kept is not looked at
    ) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if start and path.stat().st_size < start:
                raise CheckpointError(f"{path}: is shorter than when the last state was saved; restore it")
            self._path = path
            # Nothing is cut before the lock is held.
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")
            _lock(self._file, path)
            if start and episode:
                _require_same(self._file, path, start, episode)
            self._file.truncate(start)  # what came after the state is played again
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be written: {error.strerror}") from error
        self._file.seek(start)
        if not start:
            self._write_line(LOG_COLUMNS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._file.close()

    def write(self, row: Row) -> None:
        """Add one row."""
        values = asdict(row) | dict(row.losses)
        self._write_line([text(values.get(name, "")) for name in LOG_COLUMNS])

    def size(self) -> int:
        """Return the length of what is safely on disk."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def _write_line(self, values: Sequence[object]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(values)
        with self._writing():
            self._file.write(line.getvalue().encode())
            self._file.flush()  # for those who watch; only ``size`` puts it onto the disk

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"{self._path}: cannot be written: {error.strerror}; make room, then continue with --resume"
            ) from error


def _require_same(file: IO[bytes], path: Path, start: int, episode: int) -> None:
    """Refuse a log that does not begin and end as it did when a state was saved after an episode's evaluation."""
    lines = file.read(start).split(b"\n")
    if (
        lines[0] != ",".join(LOG_COLUMNS).encode()
        or lines[-1]
        or not lines[-2].startswith(f"{episode},evaluate,".encode())
    ):
        file.close()
        raise CheckpointError(
            f"{path}: has been changed since the last state was saved; restore it, or train into another --out"
        )


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep other processes from training into the same files, until this one ends or closes the file."""
    if not lock(file.fileno()):
        file.close()
        raise CheckpointError(f"{path}: another process is training into it; wait for its end, or choose another --out")


def text(value: object) -> object:
    """Return a value as it stands in the files of a training: floats with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else value
