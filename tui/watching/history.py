"""The rounds of a run so far. Plain data, no Textual."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from des.records import Status
from learning.targets import RoundsToTarget
from scenarios.logs.reading import FIGURES, LogError, LoggedRound

_ROOM = 256  # rounds that there is room for at first; the room doubles

METRICS = ("accuracy", "reward", "spent", "mean_payment")
"""Curves of one run: services leave by ``accuracy``, which may be on validation images."""

COMPARED = ("test_accuracy", *METRICS[1:])  # curves of several runs: of accuracies that on test images, as in reports


class History:
    """All complete rounds, in order. One thread may append while another reads."""

    def __init__(self) -> None:
        self.rounds: list[LoggedRound] = []  # the rounds; round n is ``rounds[n - 1]``
        self.exits: list[int] = []  # rounds in which a service left, in order
        self.conflicts: list[int] = []  # rounds in which an offer was outbid or dropped, in order
        self._figures: NDArray[np.float64] = np.empty((0, len(FIGURES), 0))  # [room for rounds, figures, M]

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, number: int) -> LoggedRound:
        return self.rounds[number - 1]

    def append(self, logged: LoggedRound) -> None:
        """Add the next round."""
        if logged.number != len(self.rounds) + 1:
            raise LogError(f"round {logged.number} follows round {len(self.rounds)}")
        figures, number = logged.figures, len(self.rounds)
        if not number:
            self._figures = np.empty((_ROOM, *figures.shape))
        elif number == len(self._figures):
            self._figures = np.concatenate([self._figures, np.empty_like(self._figures)])
        if figures.shape != self._figures.shape[1:]:
            raise LogError(f"round {logged.number} has other services than those before it")
        self._figures[number] = figures
        if logged.exits:
            self.exits.append(logged.number)
        if logged.conflicts:
            self.conflicts.append(logged.number)
        # Last: a reader of the round finds it in the lists above.
        self.rounds.append(logged)

    def keep_elsewhere(self, number: int, text: Mapping[str, str]) -> None:
        """Let a round's text be held by something else, such as the run's files."""
        self.rounds[number - 1] = replace(self.rounds[number - 1], text=text)

    def series(self, service: int, metric: str, last: int, points: int = 400) -> tuple[list[float], list[float]]:
        """Return a curve: rounds up to ``last`` and a metric's values, thinned to about ``points``.

        Rounds in which the metric has no value are left out, such as the price where no client served.
        """
        stride = max(1, last // points)
        chosen = np.arange(0, last, stride)
        if last and chosen[-1] != last - 1:
            chosen = np.append(chosen, last - 1)
        values = self._figures[chosen, FIGURES.index(metric), service]
        known = ~np.isnan(values)
        return (chosen[known] + 1.0).tolist(), values[known].tolist()

    def figure(self, service: int, figure: str, number: int) -> float:
        """Return a figure of one round; NaN where it has no value; of a money amount, in units."""
        return float(self._figures[number - 1, FIGURES.index(figure), service])

    def total(self, service: int, figure: str, last: int) -> float:
        """Return the sum of a figure over the rounds up to ``last``; of a money amount, in units."""
        # Money has six decimals, so that no rounding error of the sum is left.
        return round(float(self._figures[:last, FIGURES.index(figure), service].sum()), 6)

    def rounds_to_target(self, service: int, last: int) -> RoundsToTarget:
        """Return when a service met its target, up to round ``last``, counted from its arrival; arrays are [1]."""
        arrival = 1 + np.count_nonzero(self._figures[:last, FIGURES.index("reward"), service] == 0, keepdims=True)
        return RoundsToTarget.of([self.exit_of(service, last)], last).since(arrival)

    def exit_of(self, service: int, last: int) -> int | None:
        """Return the round in which a service met its target; None if it did not up to round ``last``."""
        met = (n for n in self.exits if n <= last and self.rounds[n - 1].services[service].status is Status.REACHED)
        return next(met, None)


def after(rounds: Sequence[int], number: int) -> int | None:
    """Return the first of the ordered rounds after ``number``, if any."""
    place = bisect_right(rounds, number)
    return rounds[place] if place < len(rounds) else None


def before(rounds: Sequence[int], number: int) -> int | None:
    """Return the last of the ordered rounds before ``number``, if any."""
    place = bisect_left(rounds, number)
    return rounds[place - 1] if place else None
