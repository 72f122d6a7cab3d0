"""Clients that come and go: how long they stay and are away, and at which hours they come."""

import numpy as np

from des.clock import NEVER
from des.schedule import DAY, Availability, ComingAndGoing, OnlineTimes, Presence

HOUR = DAY // 24


def test_clients_stay_and_are_away_for_exponential_times() -> None:
    """1,000 clients for 100 hours: about 33,000 stays. Means are to 3 %, and so is the share of time online."""
    rows = ComingAndGoing(stay=HOUR, away=2 * HOUR).draw(1_000, 100 * HOUR, seed=1)
    assert sorted(set(rows[:, 0].tolist())) == list(range(1_000))
    client, begin, end = rows[np.lexsort((rows[:, 1], rows[:, 0]))].T
    same = client[1:] == client[:-1]
    stays, gaps = end - begin, (begin[1:] - end[:-1])[same]
    for lengths, mean in ((stays, HOUR), (gaps, 2 * HOUR)):
        assert lengths.min() > 0
        assert abs(lengths.mean() / mean - 1) < 0.03
        assert abs((lengths > mean).mean() - np.exp(-1)) < 0.02  # exponential: an e-th part is longer than the mean
    assert abs((begin == 0).mean() * len(rows) / 1_000 - 1 / 3) < 0.05  # there at the start
    assert begin.max() < 100 * HOUR < end.max()


def test_clients_come_at_the_hours_and_at_others_in_a_part_of_the_number() -> None:
    nights = ComingAndGoing(stay=HOUR // 10, away=3 * HOUR, hours=(22 * HOUR, 6 * HOUR), elsewhen=0.25)
    rows = nights.draw(2_000, 10 * DAY, seed=2)
    hours = rows[rows[:, 1] > 0][:, 1] % DAY // HOUR
    per_hour = np.bincount(hours, minlength=24)
    night = np.array([hour >= 22 or hour < 6 for hour in range(24)])
    assert abs(per_hour[~night].mean() / per_hour[night].mean() - 0.25) < 0.02
    only = ComingAndGoing(stay=HOUR, away=HOUR, hours=(9 * HOUR, 17 * HOUR), elsewhen=0.0).draw(100, 3 * DAY, seed=2)
    come = only[only[:, 1] > 0][:, 1] % DAY
    assert (come >= 9 * HOUR).all()
    assert (come < 17 * HOUR).all()


def test_a_seed_draws_the_same_and_more_clients_or_time_change_no_others() -> None:
    comings = ComingAndGoing(stay=HOUR, away=HOUR)
    few, many = comings.draw(3, 9 * HOUR, seed=4), comings.draw(5, 20 * HOUR, seed=4)
    kept = many[(many[:, 0] < 3) & (many[:, 1] < 9 * HOUR)]
    assert sorted(map(tuple, few.tolist())) == sorted(map(tuple, kept.tolist()))
    assert not np.array_equal(few, comings.draw(3, 9 * HOUR, seed=5))


def test_where_rounds_are_listed_nobody_comes_or_goes_within_one() -> None:
    there = Availability(2, [Presence(0, 1, 3)])
    assert (there.is_there(0, 5), there.cut(0, 5), there.coming(0, 10)) == (True, NEVER, [])


def test_a_client_that_goes_and_comes_at_one_instant_is_there() -> None:
    times = OnlineTimes(2, np.array([(1, 5, 9), (0, 0, 3), (0, 3, 4)]), 10, ends_work=True)
    assert [times.is_there(0, now) for now in (0, 2, 3, 4)] == [True, True, True, False]
    assert [times.is_there(1, now) for now in (4, 5, 8, 9)] == [False, True, True, False]
    assert (times.cut(0, 1), times.cut(0, 3), times.cut(1, 5)) == (2, 1, 4)
    assert times.coming(0, 5) == [(3, 0)]
    assert times.coming(2, 6) == [(3, 0), (5, 1)]
