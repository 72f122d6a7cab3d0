"""Methods after the field's literature and plain baselines: dearest, outbid, fmore, contribution, stackelberg."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from des.money import MICRO, to_micro
from des.observation import Offer
from flmarket.core.plugin_options import OptionsError
from learning.play_round import play
from learning.policies.contribution import Contribution
from learning.policies.outbid import prices
from learning.policies.stackelberg import lead
from learning.policy import POLICIES, DataRanges
from learning.seats import seat
from support.feedback import by_client, feedback_on


def test_outbid_takes_no_options(make_context) -> None:
    with pytest.raises(OptionsError, match="policy 'outbid' of service 's0'"):
        POLICIES.create("outbid", make_context(), step=1)


# ---- dearest


def test_dearest_takes_the_highest_bids_that_fit(observe, context) -> None:
    seen = observe([4, 2, 5, 3, 9])
    assert by_client(POLICIES.create("dearest", context).act(seen)) == {4: 9.0}
    rich = replace(seen, budget=19.0)
    assert by_client(POLICIES.create("dearest", context).act(rich)) == {4: 9.0, 2: 5.0, 0: 4.0}
    assert by_client(POLICIES.create("dearest", context, k=2).act(rich)) == {4: 9.0, 2: 5.0}


# ---- outbid


def test_outbid_pays_just_above_the_rivals_bid_that_it_has_to_beat(make_observation, make_context) -> None:
    """Client 0 asks 2 of this service, 5 and 3 of the rivals; client 1 asks it for more than the rivals."""
    seen = make_observation([[2.0, 7.0], [5.0, 6.0], [3.0, 1.0]], [0.1, 0.9])
    assert prices(seen).tolist() == [5.000001, 7.0]
    assert prices(replace(seen, cores=2)).tolist() == [3.000001, 7.0]
    assert prices(replace(seen, cores=3)).tolist() == [2.0, 7.0]  # there is a core for everybody
    offer = POLICIES.create("outbid", make_context(2, services=3)).act(replace(seen, budget=12.0))
    assert by_client(offer) == {1: 7.0}  # the best DQI; then 5.000001 is more than the 5 that are left
    assert by_client(POLICIES.create("outbid", make_context(2, services=3)).act(replace(seen, budget=13.0))) == {
        1: 7.0,
        0: 5.000001,
    }


def test_outbid_pays_the_bid_where_the_rivals_have_left(make_observation) -> None:
    assert prices(make_observation([[2.0, 0.0], [0.0, 0.0]])).tolist() == [2.0, 0.0]


def test_outbid_wins_every_client_from_rivals_that_pay_their_bids(make_market) -> None:
    market = make_market(["alpha", "beta", "gamma"], seed=1, cores=1, rounds=5)
    reports = []
    play(market, seat(market, {"alpha": "outbid", "beta": "hqfa", "gamma": "d-first"}), [reports.append])
    first = [report.services[0] for report in reports]
    assert sum(s.wanted for s in first) > 5
    assert all(s.served == s.wanted for s in first)


# ---- FMore


def test_fmore_takes_the_best_scores(observe, context) -> None:
    """DQI .1 to .9 is a quality of 0 to 1, which is worth up to the highest cost, 8: scores -2, 0, -1, -4."""
    seen = observe([2, 8, 5, 4], [0.1, 0.9, 0.5, 0.1], budget=10)
    assert POLICIES.create("fmore", context).act(seen).clients.tolist() == [1, 0]  # 8 + 2; 5 does not fit
    assert POLICIES.create("fmore", context, winners=1).act(seen).clients.tolist() == [1]
    assert POLICIES.create("fmore", context, weight=0).act(seen).clients.tolist() == [
        0,
        3,
    ]  # LCFA; then 5 does not fit
    assert by_client(POLICIES.create("fmore", context).act(replace(seen, budget=100.0))) == {
        1: 8.0,
        2: 5.0,
        0: 2.0,
        3: 4.0,
    }


def test_fmore_pays_second_scores_from_public_bids(observe, context) -> None:
    """Costs up to 6, qualities 1, .5 and 0 at bids 6, 2 and 1: scores 0, 1 and -1.

    Two are paid 3 + 1 and 6 + 1; three do not fit.
    """
    seen = observe([6, 2, 1], [0.9, 0.5, 0.1], budget=11.0)
    context = replace(context, ranges=lambda: DataRanges((0.0, 6.0), (0.1, 0.9)))
    options = {"payment": "second-score", "winners": 2}
    assert by_client(POLICIES.create("fmore", context, **options).act(seen)) == {1: 4.0, 0: 7.0}
    assert by_client(POLICIES.create("fmore", context, **options).act(replace(seen, budget=10.0))) == {
        1: 3.0
    }  # 3 less a score of 0


# ---- contribution


def test_contributions_by_hand(make_context, make_observation) -> None:
    """Two clients serve; progress .4. Each is credited with rate * .4 / 2, later with what that does not explain."""
    policy = Contribution(make_context(3), rate=0.5)
    three, error = Offer(np.array([0, 1, 2]), np.full(3, 2.0)), 0.0
    for served, after, worth in (
        ([True, False, True], -0.4, [0.1, np.nan, 0.1]),
        ([True, True, False], -0.6, [0.1, 0.1, 0.1]),  # progress .2; the new one: .1
        ([True, False, False], -1.0, [0.25, 0.1, 0.1]),  # .4 by one alone
        ([False] * 3, -1.0, [0.25, 0.1, 0.1]),
    ):
        seen = make_observation([[2.0, 2.0, 2.0]], accuracy=1 - np.exp(error))
        policy.learn(seen, three, feedback_on(three, served, 1 - np.exp(after)))
        assert policy.worth.tolist() == pytest.approx(worth, nan_ok=True)
        error = after


def test_who_is_picked_is_paid_a_bonus_in_proportion(make_context, make_observation) -> None:
    """Of 10, 4 are kept. Clients 0 and 1 are picked for 6, and divide 4 as 3 : 1; nobody asks as little as is left."""
    policy = Contribution(make_context(3), bonus=0.4)
    policy.restore({"worth": np.array([0.3, 0.1, -0.1])})
    offer = policy.act(make_observation([[4.0, 2.0, 5.0]], budget=10.0))
    assert by_client(offer) == pytest.approx({0: 7.0, 1: 3.0}, abs=2e-6)
    assert to_micro(offer.payments).sum() <= 10 * MICRO


def test_without_estimates_only_bids_are_paid(make_context, make_observation) -> None:
    offer = Contribution(make_context(3)).act(make_observation([[4.0, 2.0, 5.0]], budget=20.0))
    assert by_client(offer) == {0: 4.0, 1: 2.0, 2: 5.0}


def test_clients_that_keep_bringing_progress_are_found(make_context, make_observation) -> None:
    """Leaving out client 0 or 1 loses .05 of progress, any other nothing; three are paid in a round."""
    policy, error = Contribution(make_context(8), bonus=0.0), 0.0
    for round_ in range(1, 61):
        seen = make_observation([[2.0] * 8], budget=6.0, round_=round_, accuracy=1 - np.exp(error))
        offer = policy.act(seen)
        error -= 0.05 * np.isin(offer.clients, [0, 1]).sum()
        policy.learn(seen, offer, feedback_on(offer, [True] * 3, 1 - np.exp(error)))
    assert {0, 1} <= set(policy.act(seen).clients.tolist())
    # Nobody else was tried again, so what the two bring is divided among the three that serve together.
    assert sorted(policy.worth)[-3:] == pytest.approx([0.1 / 3] * 3)


# ---- Stackelberg


def test_the_leader_s_price_by_hand() -> None:
    """Qualities of 1 at bids 1, 2 and 6: k clients are paid the k-th bid, and are worth 3 weight log(1 + k)."""
    bids, quality = np.array([1.0, 2.0, 6.0]), np.ones(3)

    def paid(budget: float, weight: float) -> list[float]:
        return (lead(bids, quality, budget, 3 * weight, 1.0) / MICRO).tolist()

    assert 3 * log(2) - 1 > 3 * log(3) - 4 > 3 * log(4) - 18
    assert paid(100, 1) == [1.0]
    assert 30 * log(3) - 4 > max(30 * log(2) - 1, 30 * log(4) - 18)
    assert paid(100, 10) == [2.0, 2.0]
    assert 60 * log(4) - 18 > 60 * log(3) - 4 > 60 * log(2) - 1
    assert paid(100, 20) == [6.0, 6.0, 6.0]
    assert paid(17.999999, 20) == [2.0, 2.0]  # what they would be paid is over the budget
    assert paid(0.5, 20) == []


def test_a_price_per_quality_pays_better_data_more(observe, context) -> None:
    """Bids per quality 2, 4 and 10: at a price of 4, the first takes part for 8, the second for 4."""
    seen = observe([4, 4, 10], [2.0, 1.0, 1.0], budget=15)
    assert by_client(POLICIES.create("stackelberg", context, weight=100.0).act(seen)) == {0: 8.0, 1: 4.0}


def test_clients_that_follow_at_the_same_price_take_part_together() -> None:
    assert lead(np.array([2.0, 2.0]), np.ones(2), 3.0, 200.0, 1.0).tolist() == []
    assert lead(np.array([2.0, 2.0]), np.ones(2), 4.0, 200.0, 1.0).tolist() == [2_000_000, 2_000_000]


def test_without_quality_nobody_follows(observe, context) -> None:
    assert POLICIES.create("stackelberg", context).act(observe([4, 2], [0.0, -1.0])).clients.tolist() == []
    assert (
        POLICIES.create("stackelberg", context).act(observe([4, 2], [2e-313, -1.0])).clients.tolist() == []
    )  # next to none
