"""The platform's schedulers, held against orders that were worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from des.allocation import NO_CORE
from des.mechanism import Book, RoundView, clearing_of
from des.mechanisms.scheduler import Scheduler, owners
from des.money import MICRO

ALL = np.ones((3, 6), dtype=np.bool_)


def book_of(
    offers: Sequence[tuple[int, int]],  # services and clients
    *,
    arrival: Sequence[float] = (1, 1, 1),
    demand: Sequence[int] | None = None,  # by default the offers of the book
    serves: np.ndarray = ALL,
) -> Book:
    services, clients = np.array(offers, dtype=np.int64).T
    paid = (1 + services) * MICRO  # the later services offer more, which is to change nothing
    wanting = np.bincount(services, minlength=3) if demand is None else np.array(demand)
    some, states = np.ones((3, 6)), [np.ones(3)] * 3
    view = RoundView(5, 9, some.astype(np.int64), some, some, *states, None, np.array(arrival, float), wanting, serves)

    def draws(clients: np.ndarray) -> np.ndarray:
        return np.tile([0.3, 0.2, 0.1], (*np.shape(clients), 1))

    return Book(services, clients, paid, 0 * paid, 0 * paid, np.full(3, 99 * MICRO), 1, draws, lambda: view)


def served(order: str, book: Book) -> dict[int, int]:
    """Return which service each client serves."""
    clearing = clearing_of(Scheduler(order=order), book, 5)
    won = clearing.core != NO_CORE
    assert (clearing.price[won] == book.payments[won]).all()
    return dict(zip(book.clients[won].tolist(), book.services[won].tolist(), strict=True))


def test_first_come_is_first_served_and_a_draw_breaks_ties() -> None:
    offers = [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1)]
    assert served("fifo", book_of(offers, arrival=(1.0, 1.5, 1.25))) == {0: 0, 1: 2}
    assert served("fifo", book_of(offers, arrival=(1.5, 1.25, 1.25))) == {0: 2, 1: 2}  # the lower number


def test_the_shortest_remaining_service_is_first() -> None:
    offers = [(0, 0), (1, 0), (0, 1), (1, 2), (2, 1), (2, 2)]
    assert served("srsf", book_of(offers, demand=(7, 3, 5))) == {0: 1, 1: 2, 2: 1}


def test_who_wants_what_is_not_on_offer_now_counts_too() -> None:
    """What is cleared is a part of the offers; the demand is that of all that stand."""
    assert served("srsf", book_of([(0, 0), (1, 0)], demand=(2, 1, 0))) == {0: 1}
    assert served("srsf", book_of([(0, 0), (1, 0)], demand=(2, 3, 0))) == {0: 0}


SCARCE = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1]], dtype=np.bool_)
"""Anybody can serve the first and the last service, the last two clients alone the second one."""


def test_venn_keeps_scarce_clients_for_those_who_have_no_others() -> None:
    offers = [(0, client) for client in range(6)] + [(1, 4), (1, 5)]
    book = book_of(offers, serves=SCARCE)
    # srsf gives the second service the same, as it wants less; but not where it wants more
    assert served("srsf", book) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1}
    more = book_of(offers, demand=(1, 2, 0), serves=SCARCE)
    assert served("srsf", more)[4] == 0
    assert served("venn", more) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1}


def test_venn_leaves_no_client_idle_that_somebody_wants() -> None:
    assert served("venn", book_of([(0, 4), (2, 4)], demand=(3, 2, 2), serves=SCARCE)) == {4: 2}


def test_a_long_queue_takes_over_the_clients_of_a_short_one() -> None:
    able = SCARCE[:2]
    # four clients are kept for one service of the first group, two for one of the second: 1 / 4 < 1 / 2
    assert owners(able, [np.array([4]), np.array([2])]).tolist() == [0, 0, 0, 0, 1, 1]
    # three services of the first group end theirs before the second's one ends: 3 / 4 > 1 / 2
    assert owners(able, [np.array([1, 1, 1, 9]), np.array([4])]).tolist() == [0] * 6
    # with two it is as long as the other, 2 / 4 = 1 / 2
    assert owners(able, [np.array([1, 1, 9]), np.array([4])]).tolist() == [0, 0, 0, 0, 1, 1]
    # the waits are 1/4, 2/4, 3/4 and 12/4: with 1 client wanted, the other queue is empty after 1/2, when one is done
    assert owners(able, [np.array([1, 1, 1, 9]), np.array([1])]).tolist() == [0, 0, 0, 0, 1, 1]


def test_a_group_takes_over_only_clients_that_can_serve_it() -> None:
    able = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=np.bool_)
    assert owners(able, [np.array([1] * 9), np.array([9])]).tolist() == [0, 0, 0, 1, 1]
    assert owners(able[:1], [np.array([3])]).tolist() == [0, 0, 0, -1, -1]


@pytest.mark.parametrize("order", ["fifo", "srsf", "venn"])
def test_an_empty_book_is_cleared(order: str) -> None:
    book = book_of([(0, 0)]).some(np.empty(0, dtype=np.int64), None)
    assert served(order, book) == {}
