"""Under posted prices a client that too many services want chooses whom it serves."""

import numpy as np
import pytest

from des.allocation import NO_CORE
from des.mechanisms.mechanism import Book
from des.mechanisms.posted_price import PostedPrice


@pytest.mark.parametrize("draws", [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
def test_it_serves_those_that_leave_it_the_most_above_its_bid(draws: list[float]) -> None:
    """By draws alone, it would gain by asking too much of the services that cost it the most."""
    mechanism, bids = PostedPrice(price_per_sample=0.01), np.array([[900_000], [200_000], [500_000]])
    asks = mechanism.ask(bids, np.full((3, 1), 100))
    services, clients = np.arange(3), np.zeros(3, dtype=np.int64)
    book = Book(
        services, clients, asks.least[:, 0], bids[:, 0], asks.least[:, 0], np.full(3, 10**7), 2,
        lambda client: np.array(draws) if np.ndim(client) == 0 else np.array([draws] * len(client)),
    )  # fmt: skip
    clearing = mechanism.clear(book)
    assert clearing.core.tolist() == [NO_CORE, 0, 1]
    assert clearing.price[1:].tolist() == [1_000_000, 1_000_000]


def test_draws_decide_between_equal_bids() -> None:
    mechanism, bids = PostedPrice(price_per_sample=0.01), np.array([[500_000], [500_000]])
    asks = mechanism.ask(bids, np.full((2, 1), 100))
    won = set()
    for draws in ([0.1, 0.2], [0.2, 0.1]):
        book = Book(
            np.arange(2), np.zeros(2, dtype=np.int64), asks.least[:, 0], bids[:, 0], asks.least[:, 0],
            np.full(2, 10**7), 1, lambda client, draws=draws: np.array([draws] * len(client)),
        )  # fmt: skip
        won.add(tuple(mechanism.clear(book).core.tolist()))
    assert won == {(0, NO_CORE), (NO_CORE, 0)}
