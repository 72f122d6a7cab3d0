"""Files of a training. None holds times, so that a resumed training writes the same bytes.

``NAME.csv``               the log: a row for each episode and for each evaluation
``NAME.training/``         the last states, to resume from
``NAME.training/record/``  for those who watch: plan.json, baselines.csv and preferences.csv
"""

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from flmarket.core.errors import InputError
from flmarket.core.extras import needs_extra
from flmarket.core.files import is_full, replacing
from flmarket.core.locks import lock
from learning.mahdrl import agent_file, preferences
from learning.mahdrl.agent_file import CheckpointError
from learning.mahdrl.networks import Tensors

LOG_COLUMNS = (
    "episode", "phase", "epsilon", "reward", "auc", "reached", "markup", "critic_loss", "actor_loss", "win_loss"
)  # fmt: skip
BASELINE_COLUMNS = ("policy", "reward", "auc", "reached", "markup")

KEPT = 2  # states kept: the last one, to resume from, and the one before it, in case the last one has to be deleted

GROWS = ("episodes", "epsilon_episodes")
"""Parts of the plan that may change when a training is resumed. A longer training explores no longer than planned."""

_STATE = "episode-"


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


class GrowingTable:
    """A CSV file with an episode in its first column, which a resumed training continues. No other process may."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        done: int = 0,  # rows of later episodes are dropped, as these are played again; 0: a new table
    ) -> None:
        self._path = path
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        if not lock(self._file.fileno()):
            self._file.close()
            raise CheckpointError(
                f"{path}: another process is training into it; wait for its end, or choose another --out"
            )
        with self._writing():
            self._file.truncate(self._length(done))
        self._text = io.TextIOWrapper(self._file, encoding="utf-8", newline="")
        self._rows = csv.DictWriter(self._text, columns, restval="", extrasaction="ignore", lineterminator="\n")
        if not done:
            with self._writing():
                self._rows.writeheader()
                self._text.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._text.close()

    def write(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Add rows, by column."""
        with self._writing():
            self._rows.writerows({name: _text(value) for name, value in row.items()} for row in rows)
            self._text.flush()  # for those who watch

    def sync(self) -> None:
        """Return once all rows are on the disk."""
        with self._writing():
            os.fsync(self._file.fileno())

    def _length(self, done: int) -> int:
        """Return how many bytes there are of the episodes that are not played again."""
        length = last = 0
        self._file.seek(0)
        for line in self._file if done else ():
            number = line.partition(b",")[0]
            if not line.endswith(b"\n") or (number.isdigit() and int(number) > done):
                break
            length, last = length + len(line), int(number) if number.isdigit() else 0
        if last != done:
            self._file.close()
            raise CheckpointError(
                f"{self._path}: has no row of episode {done}, after which the last state was saved; restore it, or "
                "train into another --out"
            )
        return length

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            remedy = "; make room, then continue with --resume" if is_full(error) else ""
            raise CheckpointError(f"{self._path}: cannot be written: {error.strerror}{remedy}") from error


def log_of(out: Path, done: int) -> GrowingTable:
    """Return the log of the training of an agent, with the rows of the episodes that are not played again."""
    return GrowingTable(out.with_suffix(".csv"), LOG_COLUMNS, done)


def log_row(row: Row) -> dict[str, object]:
    """Return a row by the columns of the log."""
    return asdict(row) | dict(row.losses)


def preferences_of(out: Path, done: int) -> GrowingTable:
    """Return the record of what an agent preferred, with the rows of the episodes that are not played again."""
    return GrowingTable(_recorded(out, "preferences.csv"), preferences.COLUMNS, done)


def record_plan(out: Path, content: Mapping[str, Any]) -> None:
    """Record what is trained on what, and for how long."""
    _replace(_recorded(out, "plan.json"), json.dumps(dict(content), indent=1) + "\n")


def has_baselines(out: Path) -> bool:
    return _recorded(out, "baselines.csv").exists()


def record_baselines(out: Path, rows: Mapping[str, Row]) -> None:
    """Record what other policies reach, by their names."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(BASELINE_COLUMNS)
    for name, row in rows.items():
        table.writerow([name, *(_text(getattr(row, column)) for column in BASELINE_COLUMNS[1:])])
    _replace(_recorded(out, "baselines.csv"), written.getvalue())


def _recorded(out: Path, name: str) -> Path:
    return folder_of(out) / "record" / name


def _replace(path: Path, content: str) -> None:
    try:
        with replacing(path) as file:
            file.write(content.encode())
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written: {error.strerror}") from error


def write_state(
    out: Path,  # file of the agent
    tensors: Tensors,  # what later learning depends on
    identity: Mapping[str, Any],  # what must be the same when the training is resumed
    episode: int,
    curve: Sequence[Mapping[str, Any]],  # evaluations until then
) -> None:
    """Save a state, and delete all but the last ones."""
    folder = folder_of(out)
    path = folder / f"{_STATE}{episode:06d}{agent_file.TENSORS}"
    agent_file.write(path, "training", tensors, {**identity, "episode": episode, "curve": curve})
    for old in list(_states(folder))[KEPT:]:
        old.with_suffix(agent_file.DESCRIPTION).unlink(missing_ok=True)
        old.unlink(missing_ok=True)


def resumed(
    out: Path, identity: Mapping[str, Mapping[str, Any]], restore: Callable[[Tensors], None]
) -> Mapping[str, Any] | None:
    """Restore the last state of a training; return its description, or None if there is no state."""
    path = next(_states(folder_of(out)), None)
    if path is None:
        return None
    tensors, description = agent_file.read(path, "training")
    try:
        for part, now in identity.items():
            before = description[part]
            for key in sorted(now.keys() | before.keys()):
                if key not in GROWS and now.get(key) != before.get(key):
                    raise CheckpointError(
                        f"{path}: was trained with {part}.{key} = {before.get(key)!r}, not {now.get(key)!r}; "
                        "train into another --out"
                    )
        restore(tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: is no state of this training: {error!r}; delete it and {path.stem}{agent_file.DESCRIPTION} to "
            "resume from the state before it, or from the start"
        ) from error
    return description


def has_state(out: Path) -> bool:
    """Return whether a training has a state to resume from."""
    return next(_states(folder_of(out)), None) is not None


def folder_of(out: Path) -> Path:
    """Return the folder of a training's states."""
    return out.with_suffix(".training")


def _states(folder: Path) -> Iterator[Path]:
    """Yield the tensor files of complete states, the last one first: the JSON is written after the tensors."""
    for described in sorted(folder.glob(f"{_STATE}*{agent_file.DESCRIPTION}"), reverse=True):
        yield described.with_suffix(agent_file.TENSORS)


def _text(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


class Board:
    """Writes every row of a training log to a TensorBoard folder (extra ``tensorboard``).

    A resumed training plays the episodes after its last state again, so TensorBoard's earlier records of them are
    dropped.
    """

    def __init__(
        self,
        folder: Path,  # for this training alone; TensorBoard shows it by its path
    ) -> None:
        with needs_extra("tensorboard", "--tensorboard", "TensorBoard", modules=["tensorboard"]):
            from torch.utils.tensorboard import SummaryWriter
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--tensorboard: {folder}: cannot be written: {error.strerror}") from error
        self._folder, self._kind = folder, SummaryWriter
        self._writer: Any = None

    def __call__(self, row: Row) -> None:
        """Add one row: a point to the curve of each number. Training episodes and evaluations have separate curves."""
        if self._writer is None:
            self._writer = self._kind(str(self._folder), purge_step=row.episode)
        for name, value in log_row(row).items():
            if isinstance(value, float) and math.isfinite(value):
                self._writer.add_scalar(f"{row.phase}/{name}", value, row.episode)
        self._writer.flush()

    def close(self) -> None:
        """Close the file, if any row was written."""
        if self._writer is not None:
            self._writer.close()
