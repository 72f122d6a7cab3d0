"""Bidders of display advertising: their formulas by hand, one client after another and all at once."""

from dataclasses import replace

import numpy as np
import pytest

from des.observation import Observation, Privileged, Turn
from fl.arithmetic.streams import stream_key
from learning.policy import POLICIES
from support.feedback import by_client

IMAGES = [500, 1_000, 3_000]  # 1,500 on average


def on_offer(seen: Observation, client: int, number: int = 1) -> Observation:
    """Return the view of the same service when a client comes."""
    others = np.arange(seen.clients) != client
    key = stream_key(0, "policy", "s0", 1, number)
    return replace(seen, turn=Turn(number, seen.clients, client), unwilling=others, key=key)


@pytest.fixture
def seen(make_observation) -> Observation:
    hidden = Privileged(np.array(IMAGES), np.zeros(3))
    return make_observation([[0.1, 0.1, 0.1]], budget=10.0, privileged=hidden)


@pytest.mark.parametrize(
    ("policy", "options", "bids"),
    [
        ("rtb-const", {"level": 0.3}, [0.3, 0.3, 0.3]),
        ("rtb-mcpc", {"level": 0.0004}, [0.2, 0.4, 1.2]),
        ("rtb-lin", {"level": 0.6}, [0.2, 0.4, 1.2]),
        ("rtb-ortb", {"level": 0.6, "c": 0.2}, [0.0828427, 0.1464102, 0.3291503]),  # (c level u / 1500 + c^2)^.5 - c
    ],
)
def test_bids_follow_the_formulas(seen, make_context, policy, options, bids) -> None:
    """Each rule, for clients of 500, 1,000 and 3,000 images that ask a tenth; who asks more is offered nothing."""
    bidder = POLICIES.create(policy, make_context(), **options)
    for client, bid in enumerate(bids):
        offer = by_client(bidder.act(on_offer(seen, client)))
        assert offer == ({client: pytest.approx(bid, abs=1e-6)} if bid >= 0.1 else {})


def test_random_bids_are_drawn_anew_below_the_bound(seen, make_context) -> None:
    bidder = POLICIES.create("rtb-rand", make_context(), level=4.0)
    bids = [bidder.act(on_offer(replace(seen, bids=0 * seen.bids), 0, turn)).payments[0] for turn in range(1, 101)]
    assert (max(bids) <= 4.0, len(set(bids))) == (True, 100)
    assert 1.7 < np.mean(bids) < 2.3


def test_the_bid_of_ortb_solves_its_problem(seen, make_context) -> None:
    """No other bid has more of u w(b) - lambda b w(b), with w(b) = b / (c + b): half of 1,500 images at 1 / lambda."""
    bidder = POLICIES.create("rtb-ortb", make_context(), level=2.0, c=0.5)
    for client, images in enumerate(IMAGES):
        [bid] = bidder.act(on_offer(seen, client)).payments
        others = np.linspace(0, 4, 4001)
        gain = [(2.0 * images / 1_500 - b) * b / (0.5 + b) for b in (bid, *others)]
        assert gain[0] >= max(gain) - 1e-9


def test_no_more_is_bid_than_there_is(seen, make_context) -> None:
    bidder = POLICIES.create("rtb-lin", make_context(), level=0.6)
    assert by_client(bidder.act(on_offer(replace(seen, budget=0.7), 2))) == {2: 0.7}
    assert by_client(bidder.act(on_offer(replace(seen, budget=0.05), 2))) == {}


def test_who_does_not_serve_is_offered_nothing(seen, make_context) -> None:
    refused = replace(on_offer(seen, 2), unwilling=np.ones(3, dtype=np.bool_))
    assert by_client(POLICIES.create("rtb-const", make_context()).act(refused)) == {}


def test_where_all_come_at_once_the_highest_bids_go_first(seen, make_context) -> None:
    """1.2, 0.4 and 0.2: 1.5 pays the first and the last, and a client that asks more than it is worth gets nothing."""
    bidder = POLICIES.create("rtb-lin", make_context(), level=0.6)
    assert by_client(bidder.act(seen)) == {2: 1.2, 1: 0.4, 0: 0.2}
    assert by_client(bidder.act(replace(seen, budget=1.5))) == {2: 1.2, 0: 0.2}
    assert by_client(bidder.act(replace(seen, bids=np.array([[0.1, 0.5, 0.1]])))) == {2: 1.2, 0: 0.2}


def test_where_data_are_private_the_dqi_is_the_utility(make_observation, make_context) -> None:
    seen = make_observation([[0.1, 0.1, 0.1]], [0.2, -0.5, 0.4])
    assert by_client(POLICIES.create("rtb-lin", make_context(), level=0.6).act(seen)) == {2: 1.2, 0: 0.6}
    assert by_client(POLICIES.create("rtb-mcpc", make_context(), level=2.0).act(seen)) == {2: 0.8, 0: 0.4}


@pytest.mark.parametrize(("policy", "bid"), [("const", 6), ("lin", 6), ("mcpc", 6), ("ortb", 6)])
def test_without_a_level_half_as_much_again_as_half_way_costs_is_bid_on_average(
    make_observation, make_context, policy, bid
) -> None:
    offer = POLICIES.create(f"rtb-{policy}", make_context()).act(make_observation([[1.0, 1.0, 1.0]]))
    assert offer.payments.tolist() == pytest.approx([bid] * 3)
