"""How fast a run is. Time is a number here."""

from tui.watching.pace import WINDOW, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_pace_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.rate() is None
    for _ in range(40):  # ten seconds at four rounds a second
        pace.add()
        clock.now += 0.25
    rate = pace.rate()
    assert rate is not None
    assert abs(rate - 4) < 0.3
    for _ in range(100):  # ten seconds at ten
        pace.add()
        clock.now += 0.1
    rate = pace.rate()
    assert rate is not None
    assert abs(rate - 10) < 0.3


def test_there_is_no_pace_before_a_second_has_passed_nor_after_a_pause() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(5):
        pace.add()
        clock.now += 0.1
    assert pace.rate() is None
    clock.now += 1
    assert pace.rate() is not None
    pace.stop()
    assert pace.rate() is None
    pace.add()
    clock.now += 2
    assert pace.rate() is None  # one round alone: nobody knows how long it took
    pace.add()
    assert pace.rate() == 0.5


def test_a_fast_run_does_not_keep_every_round() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(100_000):
        pace.add()
        clock.now += 0.0001
    assert len(pace._samples) < 12 * WINDOW
    rate = pace.rate()
    assert rate is not None
    assert abs(rate - 10_000) < 100


def test_a_run_that_gets_slow_shows_it() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(50):
        pace.add()
        clock.now += 0.1
    clock.now += 20
    rate = pace.rate()
    assert rate is not None
    assert rate < 3
