"""Codecs: an offer that becomes an action, and an action that becomes an offer again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import MECHANISMS
from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from learning.environments.spaces import Codec, DictCodec, FlatCodec
from learning.play_round import decide, learn
from learning.policy import POLICIES
from learning.seats import bounds_of, seat
from scenarios.build import market_factory
from scenarios.loader import load


def paid(offer: Offer) -> dict[int, int]:
    """What each client is offered, micro-units."""
    return dict(zip(offer.clients.tolist(), to_micro(offer.payments).tolist(), strict=True))


def there_and_back(codec: Codec, offer: Offer, observation: Observation) -> Offer:
    return codec.decode(codec.encode_offer(offer, observation), observation)


@pytest.fixture(params=[FlatCodec, DictCodec])
def alpha(request, make_market):
    """``alpha(budget=..., payment_limit=2)``: what a service observes in a market, and its codec."""

    def make(payment_limit=2.0, **market):
        made = make_market(["alpha", "beta"], **market)
        return made.open_round()["alpha"], request.param(bounds_of(made, 0), payment_limit)

    return make


@pytest.mark.parametrize("seeds", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_the_offers_of_every_policy_come_back_from_their_actions(seeds):
    """Of each policy from more than 1,000 observations of the paper's market, if there are eight seeds."""
    make = market_factory(load("paper", ["training.backend=surrogate", f"rounds={12 if seeds == 1 else 80}"]))
    for policy in POLICIES.builtin:
        drawn = 0
        for seed in range(seeds):
            market = make(seed)
            labels = {spec.name: policy for spec in market.services}
            policies, limits = seat(market, labels), [bounds_of(market, m) for m in range(len(labels))]
            codecs = {n: (FlatCodec(it, 100.0), DictCodec(it, 100.0)) for n, it in zip(labels, limits, strict=True)}
            while not market.finished:
                decided = decide(policies, labels, market.open_round())
                for name, it in decided.items():
                    drawn += 1
                    for codec in codecs[name]:
                        assert paid(there_and_back(codec, it.offer, it.observation)) == paid(it.offer), policy
                learn(policies, labels, decided, market.close_round({name: it.offer for name, it in decided.items()}))
        assert drawn > (1_000 if seeds > 1 else 30), (policy, drawn)


@given(
    st.lists(st.tuples(st.integers(0, 30 * MICRO), st.floats(1, 4), st.booleans()), min_size=1, max_size=12),
    st.floats(1.001, 1e6),
)
def test_every_offer_of_an_action_comes_back(make_observation, clients, limit):
    bids, ratio, wanted = (np.array(column) for column in zip(*clients, strict=True))
    chosen = np.flatnonzero(wanted)
    payments = np.rint(bids * np.minimum(ratio, limit))
    payments = np.minimum(np.maximum(payments, bids), np.floor(limit * bids))[chosen]
    seen = make_observation([bids / MICRO], budget=payments.sum() / MICRO)
    one, zero = np.ones(len(bids)), np.zeros(len(bids))
    for codec in (FlatCodec({"dqi": (zero, one)}, limit), DictCodec({"dqi": (zero, one)}, limit)):
        offer = Offer(chosen, payments / MICRO)
        assert paid(there_and_back(codec, offer, seen)) == paid(offer)


def test_an_offer_that_no_action_makes_is_refused(alpha):
    seen, codec = alpha(payment_limit=2.0)
    with pytest.raises(ValueError, match=r"^client 3 is offered more than 2\.0 bids; raise payment_limit$"):
        codec.encode_offer(Offer(np.array([1, 3]), seen.own_bids[[1, 3]] * [1, 2.1]), seen)
    seen, codec = alpha(mechanism=MECHANISMS.create("vcg"))
    with pytest.raises(ValueError, match="together over the budget"):
        codec.encode_offer(Offer(np.arange(20), seen.own_bids), seen)


def test_in_single_precision_payments_are_off_by_a_ten_millionth_of_the_limit(alpha):
    seen, codec = alpha(payment_limit=10.0, budget=100_000_000_000)
    payments = seen.own_bids * np.linspace(1, 10, 20)
    action = codec.encode_offer(Offer(np.arange(20), payments), seen)
    if isinstance(action, dict):
        action = {name: value.astype(np.float32) for name, value in action.items()}
    else:
        action = action.astype(np.float32)
    found = codec.decode(action, seen)
    assert (np.abs(found.payments - payments[found.clients]) <= 1e-7 * 10 * seen.own_bids[found.clients] + 1e-6).all()
