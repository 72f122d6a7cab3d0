"""The rounds of a run so far. Plain data, no Textual."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from des.log_records import OfferReport
from des.observation import Status
from scenarios.logs.reading import FIGURES, STALENESS, LogError, LoggedRound, StoredRounds

MOST = 512  # rounds in memory: the newest, and as many older ones that were looked at
WINDOW = 100_000_000  # letters of rounds in memory: half for the newest, half for older ones that were looked at
_ROOM = 256  # rounds that there is room for at first; the room doubles

METRICS = ("accuracy", "reward", "spent", "mean_payment")
"""Curves of one run: services leave by ``accuracy``, which may be on validation images."""

_FIGURES = (*FIGURES, STALENESS)

COMPARED = ("test_accuracy", *METRICS[1:])  # curves of several runs: of accuracies that on test images, as in reports


class _InMemory:
    """Some rounds by number, in the order in which they were added, and how large they are."""

    def __init__(self) -> None:
        self.rounds: dict[int, LoggedRound] = {}
        self.letters = 0

    @property
    def full(self) -> bool:
        return len(self.rounds) > MOST or self.letters > WINDOW // 2

    def add(self, logged: LoggedRound) -> None:
        self.rounds[logged.number] = logged
        self.letters += _letters(logged)

    def drop_first(self) -> None:
        self.letters -= _letters(self.rounds.pop(next(iter(self.rounds))))


class History:
    """All complete rounds, in order; those that the run's files hold are read from there when they are looked at.

    One thread may append while another reads.
    """

    def __init__(self) -> None:
        self.stored: StoredRounds | None = None  # the rounds' places in files; None for a run without files
        self.reading: int | None = None  # the round that is read from there, or could not be any more
        self.exits: list[int] = []  # rounds in which a service left, in order
        self.conflicts: list[int] = []  # rounds in which an offer was outbid or dropped, in order
        self._count = 0
        self._newest, self._looked_at = _InMemory(), _InMemory()
        # the rounds in which services left, by the services' places, and why
        self._left: dict[int, tuple[int, Status]] = {}
        self._figures: NDArray[np.float64] = np.empty((0, len(FIGURES), 0))  # [room for rounds, figures, M]
        self._at_work: list[tuple[OfferReport, ...]] = [()]  # as each round ended, as far as it was asked for; of none

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> LoggedRound:
        if not 1 <= number <= self._count:
            raise IndexError(number)
        return self._newest.rounds.get(number) or self._looked_at.rounds.get(number) or self._read(number)

    def __iter__(self) -> Iterator[LoggedRound]:
        return (self[number] for number in range(1, self._count + 1))

    def append(self, logged: LoggedRound, *, hold: bool = True) -> None:
        """Add the next round; ``hold`` it in memory, unless ``stored`` has its place in a file that is complete."""
        if logged.number != self._count + 1:
            raise LogError(f"round {logged.number} follows round {self._count}")
        figures, number = logged.figures, self._count
        if not number:
            self._figures = np.empty((_ROOM, *figures.shape))
        elif number == len(self._figures):
            self._figures = np.concatenate([self._figures, np.empty_like(self._figures)])
        if figures.shape != self._figures.shape[1:]:
            raise LogError(f"round {logged.number} has other services than those before it")
        self._figures[number] = figures
        if logged.exits:
            self.exits.append(logged.number)
            for service, row in enumerate(logged.services):
                if row.status.leaves:
                    self._left[service] = logged.number, row.status
        if logged.conflicts:
            self.conflicts.append(logged.number)
        if hold:
            self._newest.add(logged)
            self._release()
        # Last: a reader of the round finds it in all of the above.
        self._count = logged.number

    def _release(self) -> None:
        """Drop from memory the older half of the newest rounds, if there is no room and the files hold them."""
        newest = self._newest
        half = list(newest.rounds)[: len(newest.rounds) // 2] if newest.full else []
        if half and self.stored is not None and self.stored.written(half[-1]):
            for _ in half:
                newest.drop_first()

    def _read(self, number: int) -> LoggedRound:
        """Read an older round from the files, and keep it while there is room."""
        assert self.stored is not None  # noqa: S101 - else all rounds are held
        self.reading = number
        logged = LoggedRound.read(self.stored.read(number))
        self.reading = None
        self._looked_at.add(logged)
        while self._looked_at.full and len(self._looked_at.rounds) > 1:
            self._looked_at.drop_first()
        return logged

    def series(
        self, service: int, metric: str, last: int, points: int = 400, first: int = 1
    ) -> tuple[list[float], list[float]]:
        """Return a curve: rounds from ``first`` to ``last`` and a metric's values, thinned to about ``points``.

        Rounds in which the metric has no value are left out, such as the price where no client served.
        """
        begin = max(0, first - 1)
        stride = max(1, (last - begin) // points)
        chosen = np.arange(begin, last, stride)
        if len(chosen) and chosen[-1] != last - 1:
            chosen = np.append(chosen, last - 1)
        values = self._figures[chosen, _FIGURES.index(metric), service]
        known = ~np.isnan(values)
        return (chosen[known] + 1.0).tolist(), values[known].tolist()

    def column(self, figure: str, last: int) -> NDArray[np.float64]:
        """Return [last, M] a figure of the rounds up to ``last``; NaN where it has no value, money in units."""
        return self._figures[:last, _FIGURES.index(figure)]

    def at_work(self, number: int) -> tuple[OfferReport, ...]:
        """Return the offers whose clients were still at work when a round ended; 0 is before the first."""
        if number and not self[number].goes_on:
            return ()
        while len(self._at_work) <= number:
            logged = self[len(self._at_work)]
            earlier = (job for job in self._at_work[-1] if job.end is not None and job.end > logged.end)
            self._at_work.append((*earlier, *logged.outlasting))
        return self._at_work[number]

    def exit_of(self, service: int, last: int, why: Status = Status.REACHED) -> int | None:
        """Return the round in which a service met its target, or gave up; None if not up to round ``last``."""
        left, reason = self._left.get(service, (last + 1, None))
        return left if left <= last and reason is why else None

    def departure_of(self, service: int) -> tuple[int, Status]:
        """Return the round with which a service that has left did so, and why."""
        return self._left[service]


def _letters(logged: LoggedRound) -> int:
    return sum(map(len, logged.text.values()))
