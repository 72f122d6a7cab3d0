"""The log of a training, and its record for those who watch.

``NAME.csv``               the log: a row for each episode and for each evaluation
``NAME.training/record/``  what is trained, what other policies reach, and what the agent prefers in each evaluation
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.files import is_full, lock
from learning.training.agent_files import CheckpointError, as_json, folder_of, replace_file

LOG_COLUMNS = (
    "episode", "phase", "epsilon", "reward", "auc", "reached", "markup", "critic_loss", "actor_loss", "win_loss"
)  # fmt: skip
BASELINE_COLUMNS = ("policy", "reward", "auc", "reached", "markup")

FIFTHS = 5  # parts that the clients of a round are cut into, by the order of their bids and again by that of their DQI
SHARES = tuple(f"{kind}_{part}" for kind in ("bid", "dqi") for part in range(1, FIFTHS + 1))
PREFERENCE_COLUMNS = ("episode", "service", "offers", "served", "markup", *SHARES)


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

    def values(self) -> dict[str, object]:
        """Return what it has for each column of the log."""
        return asdict(self) | dict(self.losses)


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
                    f"{path}: another process is training into it; wait for its end, or choose another file"
                )
            self._file.truncate(self._length(done))
            self._text = io.TextIOWrapper(self._file, encoding="utf-8", newline="")
            self._rows = csv.DictWriter(self._text, columns, restval="", extrasaction="ignore", lineterminator="\n")
            if not done:
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
                "train into another file"
            )
        return length

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            remedy = "; make room, then continue with the option resume" if is_full(error) else ""
            raise CheckpointError(f"{self._path}: cannot be written: {error.strerror}{remedy}") from error


@contextmanager
def announced(places: Iterable[Path]) -> Iterator[None]:
    """Leave a log without rows for each agent that is about to be trained, so that whoever watches finds it.

    None is left of a training that did not begin.
    """
    new = [out for out in places if not out.with_suffix(".csv").exists()]
    folders = {out.parent for out in new if not out.parent.exists()}
    try:
        for out in new:
            with log_of(out, 0):
                pass
        yield
    finally:
        for out in filter(is_announced, new):
            out.with_suffix(".csv").unlink()
        for folder in folders:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def is_announced(out: Path) -> bool:
    """Whether there is nothing of a training but a log without rows."""
    head = (",".join(LOG_COLUMNS) + "\n").encode()
    with suppress(OSError):
        log = out.with_suffix(".csv")
        return not folder_of(out).exists() and log.stat().st_size == len(head) and log.read_bytes() == head
    return False


def log_of(out: Path, done: int) -> GrowingTable:
    """Return the log of the training of an agent, with the rows of the episodes that are not played again."""
    return GrowingTable(out.with_suffix(".csv"), LOG_COLUMNS, done)


def preferences_of(out: Path, done: int) -> GrowingTable:
    """Return the record of what an agent preferred, with the rows of the episodes that are not played again."""
    return GrowingTable(_recorded(out, "preferences.csv"), PREFERENCE_COLUMNS, done)


def record_plan(out: Path, content: Mapping[str, Any]) -> None:
    """Record what is trained on what, and for how long."""
    replace_file(_recorded(out, "plan.json"), as_json(content))


def has_baselines(out: Path) -> bool:
    return _recorded(out, "baselines.csv").exists()


def record_baselines(out: Path, rows: Mapping[str, Row]) -> None:
    """Record what other policies reach, by their names."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(BASELINE_COLUMNS)
    for name, row in rows.items():
        table.writerow([name, *(_text(getattr(row, column)) for column in BASELINE_COLUMNS[1:])])
    replace_file(_recorded(out, "baselines.csv"), written.getvalue().encode())


def _recorded(out: Path, name: str) -> Path:
    return folder_of(out) / "record" / name


def _text(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


class Preferences:
    """Counts the offers of an evaluation, all its markets and seats together, service by service."""

    def __init__(self) -> None:
        # by service: rounds, offers, served, the sums of bids and of payments, and the offers to each fifth
        self._sums: dict[str, FloatArray] = {}

    def add(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Count one service's offers of a round."""
        clients, bids = offer.clients, observation.own_bids
        parts = [
            np.bincount(fifths(values, observation.available)[clients], minlength=FIFTHS)
            for values in (bids, observation.dqi)
        ]
        sums = [1, len(clients), np.sum(feedback.served), bids[clients].sum(), offer.payments.sum()]
        counted = np.concatenate([sums, *parts]).astype(np.float64)
        self._sums[observation.service] = self._sums.get(observation.service, 0.0) + counted

    def rows(self, episode: int) -> Iterator[Mapping[str, object]]:
        """Yield a row for each service, by column; what there is no number for is empty."""
        for name, sums in self._sums.items():
            rounds, offers, served, bid, offered, *parts = sums.tolist()
            shares = [part / offers if offers else "" for part in (served, *parts)]
            yield {
                "episode": episode,
                "service": name,
                "offers": offers / rounds,
                "markup": offered / bid - 1.0 if bid > 0 else "",
                **dict(zip(("served", *SHARES), shares, strict=True)),
            }


def fifths(
    values: FloatArray,  # [C], a bid or a DQI of each client
    available: BoolArray,  # [C], whether each client can be chosen: only these are ordered; the others are in fifth 0
) -> IntArray:
    """Return the fifth of each client [C], from 0, in the order of some values; of equal ones, the first come first."""
    parts = np.zeros(len(values), np.int64)
    chosen = np.flatnonzero(available)
    order = chosen[np.argsort(values[chosen], kind="stable")]
    parts[order] = np.arange(len(order)) * FIFTHS // max(1, len(order))
    return parts
