"""Serial selection; LCFA, HQFA, Random, greedy and d-first: their order of preference, and how it fills the budget."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.offer_checks import check_offer
from fl.arithmetic.ordered_sums import standardised
from learning.client_selection.selection import fill_budget
from learning.policies import ucb
from learning.policy import POLICIES

HEURISTICS = ["random", "lcfa", "hqfa", "greedy", "d-first"]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("lcfa", [1, 3, 0, 2, 4]),  # rising bids
        ("hqfa", [4, 2, 0, 3, 1]),  # falling DQI
        ("greedy", [3, 0, 2, 4, 1]),  # falling DQI per bid: .133 .125 .12 .1 .05
        ("d-first", [4, 2, 0, 3, 1]),  # falling size; of the two with 300 images the lower EMD first
    ],
)
def test_preference_with_all_the_money_in_the_world(observe, context, policy: str, order: list[int]) -> None:
    seen = observe(
        [4, 2, 5, 3, 9],
        [0.5, 0.1, 0.6, 0.4, 0.9],
        data_size=[300, 100, 300, 200, 400],
        emd=[0.8, 0.4, 0.6, 0.4, 0.4],
        budget=1e6,
    )
    assert POLICIES.create(policy, context).act(seen).clients.tolist() == order


def test_greedy_takes_who_asks_nothing_first(observe, context) -> None:
    seen = observe([0.001, 0, 1], [0.9, 0.1, 0.9])
    assert POLICIES.create("greedy", context).act(seen).clients.tolist() == [1, 0, 2]


@pytest.mark.parametrize("policy", HEURISTICS)
def test_of_equal_clients_each_is_first_equally_often_and_reproducibly(observe, context, policy: str) -> None:
    def first(seed: int) -> int:
        seen = observe([2, 2, 2, 2], data_size=[100] * 4, budget=2, seed=seed)
        (client,) = POLICIES.create(policy, context).act(seen).clients.tolist()
        return client

    firsts = [first(seed) for seed in range(400)]
    assert [first(seed) for seed in range(400)] == firsts
    counts = Counter(firsts)
    assert all(60 < counts[client] < 140 for client in range(4))  # 100 expected, standard deviation 9


def test_random_prefers_nobody(observe, context) -> None:
    """Neither the cheap nor the good: all pairs are in either order equally often."""
    ahead = np.zeros((3, 3))
    for seed in range(600):
        order = POLICIES.create("random", context).act(observe([1, 2, 3], [0.1, 0.9, 0.5], seed=seed)).clients.tolist()
        for place, client in enumerate(order):
            ahead[client, order[place + 1 :]] += 1
    assert ahead[np.triu_indices(3, 1)] == pytest.approx([300] * 3, abs=60)  # standard deviation 12


def test_acting_leaves_no_trace(observe, context) -> None:
    """Randomness comes from the observation alone, so a policy may be asked twice, or only in the tenth round."""
    policy = POLICIES.create("random", context)
    once = policy.act(observe(range(1, 9), seed=3)).clients.tolist()
    policy.act(observe(range(1, 9), seed=4))
    assert policy.act(observe(range(1, 9), seed=3)).clients.tolist() == once


markets = st.lists(
    st.tuples(st.integers(0, 9_000_000), st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([100, 200])),
    min_size=1,
    max_size=12,
)


@given(
    clients=markets, budget=st.integers(0, 20_000_000), seed=st.integers(0, 1000), policy=st.sampled_from(HEURISTICS)
)
def test_every_heuristic_keeps_the_constraints_and_leaves_nobody_who_fits(
    observe, context, clients, budget, seed, policy
) -> None:
    bids, dqi, sizes = zip(*clients, strict=True)
    seen = observe(np.array(bids) / 1e6, dqi, data_size=sizes, budget=budget / 1e6, seed=seed)
    offer = POLICIES.create(policy, context).act(seen)
    checked = check_offer(offer, policy=policy, service="own", round_=1, bids=np.array(bids), budget=budget)
    assert checked.payments.tolist() == [bids[client] for client in checked.clients]  # (4), (5); pays exactly the bid
    left = set(range(len(bids))) - set(checked.clients.tolist())
    assert all(bids[client] > budget - checked.total for client in left)


@pytest.mark.parametrize(
    ("stop", "chosen"),
    [(False, [0, 2, 3]), (True, [0])],  # 5 + 3 + 2 = 10, past client 1 who asks 8; or end with client 1
)
def test_filling_the_budget(stop: bool, chosen: list[int]) -> None:
    offer = fill_budget(
        [0, 1, 2, 3], np.array([5.0, 8.0, 3.0, 2.0]), 10.0, available=np.ones(4, bool), stop_at_misfit=stop
    )
    assert offer.clients.tolist() == chosen
    assert offer.clients.dtype == np.int64
    assert offer.payments.tolist() == [[5.0, 8.0, 3.0, 2.0][client] for client in chosen]


def test_filling_the_budget_skips_clients_that_are_offline() -> None:
    online = np.array([True, False, True])
    assert fill_budget([1, 2, 0], np.ones(3), 3.0, available=online).clients.tolist() == [2, 0]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'available'"):
        fill_budget([1, 2, 0], np.ones(3), 3.0)  # type: ignore[call-arg]


def test_filling_the_budget_counts_in_micro_units() -> None:
    # In floating point, 0.1 + 0.1 + 0.1 > 0.3.
    assert fill_budget([0, 1, 2], np.full(3, 0.1), 0.3, available=np.ones(3, bool)).clients.tolist() == [0, 1, 2]
    assert fill_budget([0, 1, 2], np.full(3, 0.100001), 0.3, available=np.ones(3, bool)).clients.tolist() == [0, 1]


@pytest.mark.parametrize("budget", [0.0, 1.999999])
def test_filling_a_budget_below_every_bid(budget: float) -> None:
    offer = fill_budget([0, 1], np.array([2.0, 3.0]), budget, available=np.ones(2, bool))
    assert (offer.clients.shape, offer.payments.shape) == ((0,), (0,))


def test_values_are_counted_in_standard_deviations_from_their_mean():
    np.testing.assert_allclose(standardised(np.array([2, 4, 6])), np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5))


def test_equal_values_do_not_differ_by_what_rounding_leaves():
    assert standardised(np.full(5, 0.3)).tolist() == [0.0] * 5
    assert standardised(np.full(20, 0.1)).tolist() == [0.0] * 20, "whose standard deviation is 1.4e-17"
    assert standardised(np.array([7.0])).tolist() == [0.0]


def test_the_bandit_sees_no_quality_where_all_have_the_same(make_observation):
    features = ucb.features(make_observation([[float(bid) for bid in range(1, 21)]], dqi=np.full(20, 0.1)))
    assert features[:, 1].tolist() == [0.0] * 20
