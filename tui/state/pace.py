"""Rounds a second: the speeds that a user may choose, and the pace that a run has."""

from collections import deque
from collections.abc import Callable
from math import inf
from time import monotonic

SPEEDS: tuple[float | None, ...] = (0.25, 0.5, 1, 2, 5, 10, None)  # rounds per second; None is full speed

TO_WATCH = 5.0  # rounds per second of a run that is started to be watched, if the user has chosen no speed

SLOW = 2.0  # rounds per second up to which a round that comes is shown part by part

LONGEST = 60.0  # seconds that such a run takes at most, if its rounds are played as fast as that


def to_watch(rounds: int) -> float:
    """Return the speed of a run of so many rounds that is started to be watched."""
    return max(TO_WATCH, rounds / LONGEST)


def faster(speed: float | None, direction: int) -> float | None:
    """Return the next of ``SPEEDS`` above or below a speed, which need not be one of them; itself at either end."""
    here, *values = (inf if value is None else value for value in (speed, *SPEEDS))
    others = [other for other, value in zip(SPEEDS, values, strict=True) if (value - here) * direction > 0]
    return others[0 if direction > 0 else -1] if others else speed


WINDOW = 5.0  # seconds that count

GRAIN = 0.1  # seconds between two samples: a fast run does not keep one for each round

LEAST = 1.0  # seconds of rounds before there is a pace


class Pace:
    """Counts rounds as they come. One thread may count while another asks."""

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,  # returns the time in seconds
        window: float = WINDOW,  # seconds that count
    ) -> None:
        self._clock, self._window = clock, window
        self._samples: deque[tuple[float, int]] = deque()  # a time, and the rounds until then
        self._count = 0

    def add(self) -> None:
        """Count a round."""
        now = self._clock()
        self._count += 1
        if not self._samples or now - self._samples[-1][0] >= GRAIN:
            self._samples.append((now, self._count))
        # One sample before the window stays: the window begins at it.
        while len(self._samples) > 2 and now - self._samples[1][0] > self._window:
            self._samples.popleft()

    def stop(self) -> None:
        """Forget the rounds so far: the run has paused, and the pause does not count."""
        self._samples.clear()

    def rate(self) -> float | None:
        """Return the rounds a second; None if too few have come."""
        samples = list(self._samples)
        if not samples:
            return None
        since, count = samples[0]
        passed = self._clock() - since
        if passed < LEAST or self._count == count:
            return None
        return (self._count - count) / passed
