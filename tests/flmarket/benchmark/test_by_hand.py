"""A round that is cleared outside of a market: what comes out, and what is no round."""

from typing import Any

import numpy as np
import pytest

from des.mechanisms.pay_as_offered import PayAsOffered
from des.offer_checks import OfferError
from flmarket import Clearing, InputError, Mechanism
from flmarket.testing import clear_round

nan, inf = np.nan, np.inf


def test_a_round_is_cleared_by_hand() -> None:
    """Service 1 does not want client 0; client 1 has one core, and serves who offers more."""
    prices = clear_round("pay-as-offered", bids=[[1, 1], [1, 1]], payments=[[2, 2], [np.nan, 3]], budgets=[4, 3])
    assert np.array_equal(prices, [[2, np.nan], [np.nan, 3]], equal_nan=True)
    second = clear_round("uniform-price", bids=[[1, 1], [1, 1]], payments=[[2, 2], [2, 3]], budgets=5, cores=2)
    assert second.tolist() == [[1, 1], [1, 1]]  # nobody is refused


def test_of_equal_offers_the_first_is_taken_unless_draws_are_asked_for() -> None:
    def winners(**seed: int) -> list[int]:
        served = ~np.isnan(clear_round("pay-as-offered", np.ones((3, 40)), 1, 40, **seed))
        return served.argmax(axis=0).tolist()

    assert winners() == [0] * 40
    assert set(winners(seed=1)) == {0, 1, 2}
    assert winners(seed=1) == winners(seed=1) != winners(seed=2)


def test_a_mechanism_sees_the_round_that_is_described() -> None:
    class ByAccuracy(Mechanism):
        def clear(self, book):
            behind = (book.round.accuracy < 0.5)[book.services]
            return Clearing(np.where(behind, 0, -1), book.payments + book.round.number * 0)

    prices = clear_round(ByAccuracy(), [[1, 1], [1, 1]], 1, 2, accuracy=[0.4, 0.6], number=3)
    assert np.array_equal(prices, [[1, 1], [np.nan, np.nan]], equal_nan=True)


def test_offers_that_no_service_could_make_are_refused() -> None:
    with pytest.raises(OfferError, match=r"service '0', round 1, client 1: the payment 1\.000000 is below the bid"):
        clear_round("pay-as-offered", bids=[1, 2], payments=1, budgets=2)
    with pytest.raises(OfferError, match="over the budget of 1"):
        clear_round("pay-as-offered", bids=[1, 1], payments=1, budgets=1)


def test_clients_may_have_different_numbers_of_cores() -> None:
    served = ~np.isnan(clear_round("pay-as-offered", [[1, 1], [1, 1]], 1, 2, cores=[1, 2]))
    assert served.sum(axis=0).tolist() == [1, 2]


def test_what_is_seen_of_one_service_may_have_the_shape_of_its_bids() -> None:
    class LargestFirst(Mechanism):
        def clear(self, book):
            return Clearing(np.where(book.round.data_size[0] > 3, 0, -1), book.payments)

    assert np.array_equal(clear_round(LargestFirst(), [1, 1], 1, 2, data_size=[3, 4]), [nan, 1], equal_nan=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bids": [4, nan]}, "bids must be at least 0 and at most 1,000,000,000, not nan"),
        ({"bids": [-2.5, 1]}, "bids must be at least 0 and at most 1,000,000,000, not -2.5"),
        ({"bids": [inf, 1]}, "bids must be at least 0 and at most 1,000,000,000, not inf"),
        ({"bids": [None, 1]}, "bids must be numbers, not object"),
        ({"bids": "ab"}, "bids must be numbers, not <U2"),
        ({"bids": []}, r"bids must be \[M, C\] or \[C\], of at least one client, not of shape \(0,\)"),
        ({"bids": [[[1]]]}, r"bids must be \[M, C\] or \[C\]"),
        ({"bids": [[1], [1, 2]]}, "bids must be an array; its lists are of different lengths"),
        ({"payments": [1, 1, 1]}, r"payments must be of shape \(2,\) or one number, not of shape \(3,\)"),
        ({"payments": [[1], [1]]}, "payments must be of shape"),
        ({"bids": [[1, 1], [1, 1]], "payments": [3, 2]}, r"payments must be of shape \(2, 2\) or one number"),
        ({"payments": [inf, 1]}, "payments must be at least 0 and at most 1,000,000,000, not inf"),
        ({"bids": [[1], [1]], "payments": 1, "budgets": [5]}, r"budgets must be of shape \(2,\) or one number"),
        ({"budgets": nan}, "budgets must be at least 0 and at most 1,000,000,000, not nan"),
        ({"budgets": 1e13}, "budgets must be at least 0 and at most 1,000,000,000, not 10000000000000.0"),
        ({"budgets": -1}, "budgets must be at least 0 and at most 1,000,000,000, not -1"),
        ({"cores": 0}, "cores must be at least 1, not 0"),
        ({"cores": 1.5}, "cores must be whole numbers, not float64"),
        ({"cores": [1, 1, 1]}, r"cores must be one number or of shape \(2,\)"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"data_size": [[1, 2, 3]]}, r"data_size must be of shape \(1, 2\) or of shape \(2,\), not of shape \(1, 3\)"),
        ({"data_size": "abc"}, "data_size must be of shape"),
        ({"data_size": [-1, 1]}, "data_size must be at least 0, not -1"),
        ({"data_size": [1.5, 1]}, "data_size must be whole numbers, not float64"),
        ({"dqi": ["a", "b"]}, "dqi must be numbers, not <U1"),
        ({"dqi": [nan, 1]}, "dqi must be finite, not nan"),
        ({"arrival": [-1]}, "arrival must be at least 0 and finite, not -1"),
        ({"number": "a"}, "number must be whole numbers"),
        ({"number": 0}, "number must be at least 1, not 0"),
        ({"number": 3, "rounds": 2}, "number must be at most rounds, 2, not 3"),
        ({"serves": [True]}, "serves must be of shape"),
        ({"serves": [1, 1]}, "serves must be booleans, not int64"),
        ({"data_sizes": 3}, "a mechanism sees no 'data_sizes' of a round; did you mean 'data_size'?"),
        ({"mechanism": PayAsOffered}, r"or the name of one, not the class itself; PayAsOffered\(\) makes one"),
        ({"mechanism": None}, "mechanism must be an object of a mechanism, or the name of one, not None"),
        ({"mechanism": 3}, "not 3"),
    ],
)  # fmt: skip
def test_each_argument_is_checked(changes: dict[str, Any], message: str) -> None:
    given = {"mechanism": "pay-as-offered", "bids": [1, 1], "payments": [1, 1], "budgets": 2}
    with pytest.raises(InputError, match=message):
        clear_round(**(given | changes))
