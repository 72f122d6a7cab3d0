"""How fast a run is. Time is a number here."""

import pytest

from tui.state.pace import WINDOW, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace(clock)


def play(pace: Pace, clock: Clock, rounds: int, every: float) -> float | None:
    """Play some rounds, one after so many seconds; return the pace after them."""
    for _ in range(rounds):
        pace.add()
        clock.now += every
    return pace.rate()


def test_the_pace_is_that_of_the_last_seconds(pace: Pace, clock: Clock) -> None:
    assert pace.rate() is None
    assert play(pace, clock, 40, 0.25) == pytest.approx(4, abs=0.3)
    assert play(pace, clock, 100, 0.1) == pytest.approx(10, abs=0.3)
    clock.now += 20
    assert pace.rate() < 3  # type: ignore[operator]


def test_there_is_no_pace_before_a_second_has_passed_nor_after_a_pause(pace: Pace, clock: Clock) -> None:
    assert play(pace, clock, 5, 0.1) is None
    clock.now += 1
    assert pace.rate() is not None
    pace.stop()
    assert pace.rate() is None
    assert play(pace, clock, 1, 2) is None  # one round alone: nobody knows how long it took
    pace.add()
    assert pace.rate() == 0.5


def test_a_fast_run_does_not_keep_every_round(pace: Pace, clock: Clock) -> None:
    assert play(pace, clock, 100_000, 0.0001) == pytest.approx(10_000, abs=100)
    assert len(pace._samples) < 12 * WINDOW
