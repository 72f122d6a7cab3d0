"""Clients that are there in some rounds only."""

from des.schedule import Availability


def test_a_client_is_there_from_the_first_to_the_last_round_of_each_interval() -> None:
    there = Availability(3, [(0, 2, 4), (2, 1, 1), (2, 4, 9)])
    assert [sorted(there.offline(n)) for n in range(1, 6)] == [[0, 1], [1, 2], [1, 2], [1], [0, 1]]
