"""The rounds of a run so far. Plain data, no Textual."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from des.money import MICRO
from des.records import Status
from learning.targets import RoundsToTarget
from scenarios.logs.reading import LogError, LoggedRound

METRICS = ("accuracy", "reward", "spent", "mean_payment")


class History:
    """All complete rounds, in order. One thread may append while another reads.

    Attributes:
        rounds: the rounds; round n is ``rounds[n - 1]``.
        exits: rounds in which a service left, in order.
        conflicts: rounds in which an offer was outbid or dropped, in order.
    """

    def __init__(self) -> None:
        self.rounds: list[LoggedRound] = []
        self.exits: list[int] = []
        self.conflicts: list[int] = []

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, number: int) -> LoggedRound:
        return self.rounds[number - 1]

    def append(self, logged: LoggedRound) -> None:
        """Add the next round.

        Raises:
            LogError: it is not the next one.
        """
        if logged.number != len(self.rounds) + 1:
            raise LogError(f"round {logged.number} follows round {len(self.rounds)}")
        if any(row.status is Status.REACHED for row in logged.services):
            self.exits.append(logged.number)
        if any(row.refused for row in logged.services):
            self.conflicts.append(logged.number)
        # Last: whoever reads the round finds it in the lists above.
        self.rounds.append(logged)

    def series(self, service: int, metric: str, last: int, points: int = 400) -> tuple[list[float], list[float]]:
        """Return a curve: rounds up to ``last`` and a metric's values, thinned to about ``points``.

        Rounds in which the metric has no value are left out, such as the price where nobody was served.
        """
        stride = max(1, last // points)
        chosen = list(range(1, last + 1, stride))
        if chosen and chosen[-1] != last:
            chosen.append(last)
        xs: list[float] = []
        ys: list[float] = []
        for number in chosen:
            value = getattr(self.rounds[number - 1].services[service], metric)
            if value is not None:
                xs.append(float(number))
                ys.append(value / MICRO if metric == "spent" else value)
        return xs, ys

    def rounds_to_target(self, service: int, last: int) -> RoundsToTarget:
        """Return when a service met its target, of the rounds up to ``last``; arrays are [1]."""
        met = (n for n in self.exits if n <= last and self.rounds[n - 1].services[service].status is Status.REACHED)
        return RoundsToTarget.of([next(met, None)], last)


def after(rounds: Sequence[int], number: int) -> int | None:
    """Return the first of the ordered rounds after ``number``, if any."""
    place = bisect_right(rounds, number)
    return rounds[place] if place < len(rounds) else None


def before(rounds: Sequence[int], number: int) -> int | None:
    """Return the last of the ordered rounds before ``number``, if any."""
    place = bisect_left(rounds, number)
    return rounds[place - 1] if place else None
