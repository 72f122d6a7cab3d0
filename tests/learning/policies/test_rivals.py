"""The bandit, the Oort-like policy, and pacing."""

from dataclasses import replace

import numpy as np
import pytest

from des.observation import Offer
from learning.evaluation import evaluate, everywhere
from learning.play_round import play
from learning.policies.oort import OortLike
from learning.policies.pacing import RefusalPacing
from learning.policies.ucb import BudgetedUCB, features
from support.feedback import feedback_on, offer_to

# ---- bandit


def test_the_bandit_s_features_are_standardised_within_the_round(make_observation):
    x = features(make_observation([[1.0, 3.0]], [0.2, 0.6]))
    np.testing.assert_allclose(x, [[1, -1, -1, 1], [1, 1, 1, 1]])
    np.testing.assert_allclose(features(make_observation([[2.0, 2.0]])), [[1, 0, 0, 0]] * 2)


def test_the_bandit_s_bounds_by_hand(make_context, make_observation):
    """One round with features [1, 0, 0, 0] twice: V = 4 + 1, so theta_0 = 2 y / 5."""
    bandit = BudgetedUCB(make_context(), exploration=0.5)
    seen = make_observation([[2.0, 2.0, 2.0]], accuracy=0.0)
    bandit.act(seen)
    accuracy = 1 - np.exp(-0.3)  # progress y = 0.3
    bandit.learn(seen, offer_to([0, 1, 2]), feedback_on(offer_to([0, 1, 2]), [True, False, True], accuracy=accuracy))
    # Width: sqrt of x V^-1 V~ V^-1 x with V~ = V after a single round, so sqrt(1 / 5); noise sqrt(y^2) = 0.3.
    expected = 2 * 0.3 / 5 + 0.5 * 0.3 * np.sqrt(1 / 5)
    np.testing.assert_allclose(bandit._bounds(features(seen)), [expected] * 3)


def test_the_bandit_learns_which_clients_bring_progress(make_context, make_observation):
    """Progress comes from clients of high DQI alone; bids say nothing."""
    bandit = BudgetedUCB(make_context(8), exploration=0.1)
    rng = np.random.default_rng(0)
    error, hits = 0.0, []
    for round_ in range(1, 41):
        dqi = rng.permutation([0.2] * 4 + [0.8] * 4)
        seen = make_observation([[2.0] * 8], dqi, budget=4.0, round_=round_, accuracy=1 - np.exp(error))
        made = bandit.act(seen)
        good = (dqi[made.clients] == 0.8).sum()
        hits.append(good / 2)
        error -= 0.05 * good
        bandit.learn(
            seen, made, feedback_on(made, [True] * len(made.clients), accuracy=1 - np.exp(error), round_=round_)
        )
    assert np.mean(hits[20:]) == 1.0


def test_the_bandit_forgets(make_context, make_observation):
    """Clients that brought progress 30 rounds ago count for less than those that do now, if rounds are discounted."""

    def worth(discount):
        bandit = BudgetedUCB(make_context(2), exploration=0.0, discount=discount)
        error = 0.0
        for round_ in range(60):
            good = 0 if round_ < 30 else 1
            for client, progress in ((good, 0.1), (1 - good, 0.0)):
                seen = make_observation([[2.0, 2.0]], [0.2, 0.8], accuracy=1 - np.exp(error))
                error -= progress
                bandit.learn(
                    seen, offer_to([client]), feedback_on(offer_to([client]), [True], accuracy=1 - np.exp(error))
                )
        low, high = bandit._bounds(features(seen))
        return high - low

    assert worth(1.0) == pytest.approx(0.0, abs=1e-3)
    assert worth(0.9) > 0.05


def test_rounds_without_clients_teach_the_bandit_nothing(make_context, make_observation):
    bandit = BudgetedUCB(make_context(2))
    seen = make_observation([[2.0, 2.0]])
    bandit.act(seen)
    bandit.learn(seen, Offer.none(), feedback_on(Offer.none(), []))
    assert not bandit._moment.any()


def test_the_bandit_takes_an_accuracy_of_one(make_context, make_observation):
    bandit = BudgetedUCB(make_context(2))
    seen = make_observation([[2.0, 2.0]], accuracy=1.0)
    chosen = bandit.act(seen)
    bandit.learn(seen, chosen, feedback_on(chosen, [True, True], 1.0))
    assert np.isfinite(bandit._bounds(features(seen))).all()


# ---- Oort


def test_oort_s_utility_by_hand(make_context):
    """Losses 1, 2, 3 at bids 1: clipped at the 95 % quantile (2.9), scaled to [0, 1], plus sqrt(0.1 ln 4 / last)."""
    oort = OortLike(make_context())
    oort._losses, oort._served = np.array([1.0, 2.0, 3.0]), np.array([1, 3, 3])
    utility = oort._utilities(np.arange(3), np.ones(3), round_=4)
    stale = np.sqrt(0.1 * np.log(4) / np.array([1, 3, 3]))
    np.testing.assert_allclose(utility, np.array([0, 1 / 1.9, 1.9 / 1.9]) + stale)


def test_oort_prefers_loss_times_bid_once_all_are_known(make_context, make_observation):
    oort = OortLike(make_context())
    seen = make_observation([[2.0, 2.0, 2.0]], budget=6.0)
    oort.learn(seen, offer_to([0, 1, 2]), feedback_on(offer_to([0, 1, 2]), [True] * 3, losses=[0.5, 3.0, 1.0]))
    made = oort.act(replace(seen, budget=4.0, round=2))
    assert made.clients.tolist() == [1, 2]
    dear = oort.act(make_observation([[9.0, 1.0, 1.0]], budget=9.0, round_=2))  # 0.5 * 9 beats 3.0 * 1
    assert dear.clients.tolist() == [0]


def test_oort_explores_with_a_falling_share_of_the_budget(make_context, make_observation):
    oort = OortLike(make_context(4), exploration=0.5)
    seen = make_observation([[1.0] * 4], budget=2.0)
    oort.learn(seen, offer_to([0, 1]), feedback_on(offer_to([0, 1]), [True, True], losses=[1.0, 2.0]))
    made = oort.act(seen)
    assert len(set(made.clients.tolist()) & {2, 3}) == 1  # half the budget for one of the unknown
    assert 1 in made.clients
    assert oort._share(1) == 0.5
    assert oort._share(2) == pytest.approx(0.49)
    assert oort._share(1000) == 0.2
    assert OortLike(make_context(), exploration=0.1)._share(1000) == 0.1  # never more than asked for


def test_refused_clients_stay_unknown_to_oort(make_context, make_observation):
    oort = OortLike(make_context())
    oort.learn(make_observation([[1.0] * 3]), offer_to([0, 2]), feedback_on(offer_to([0, 2]), [False, True]))
    assert np.isnan(oort._losses).tolist() == [True, True, False]
    assert oort._served.tolist() == [0, 0, 1]


def test_oort_spends_what_is_left_on_unknown_clients(make_context, make_observation):
    oort = OortLike(make_context(), exploration=0.0)
    assert len(oort.act(make_observation([[1.0] * 3])).clients) == 3


# ---- pacing


def test_pacing_follows_the_refusals(make_context, make_observation):
    pacing = RefusalPacing(make_context(), rate=0.2, tolerance=0.1, limit=0.3)
    seen = make_observation([[2.0] * 3])
    markups = []
    for served in ([True, False], [False, False], [True, True], [False, False], [True] * 2):
        pacing.learn(seen, offer_to([0, 1]), feedback_on(offer_to([0, 1]), served))
        markups.append(pacing.markup)
    # + 0.2 * (1/2 - 0.1); + 0.2 * 0.9; - 0.02; up against the limit; - 0.02
    assert markups == pytest.approx([0.08, 0.26, 0.24, 0.3, 0.28])


def test_pacing_does_not_pay_more_for_clients_that_left(make_context, make_observation):
    pacing = RefusalPacing(make_context(), rate=0.2, tolerance=0.1)
    seen = make_observation([[2.0] * 3])
    pacing.learn(seen, offer_to([0, 1]), feedback_on(offer_to([0, 1]), [False, False], dropped=[True, True]))
    assert pacing.markup == 0
    pacing.learn(seen, offer_to([0, 1]), feedback_on(offer_to([0, 1]), [False, False], dropped=[True, False]))
    assert pacing.markup == pytest.approx(0.2 * (1 / 2 - 0.1))


def test_pacing_stays_at_the_bid_where_nobody_competes_and_clients_leave(make_market):
    """At 30 % departures it used to learn markups near its limit, and to buy half as many clients."""
    market = make_market(["alpha"], departure_rate=0.3, rounds=40)
    pacing = everywhere("pacing")(market)
    play(market, pacing, [])
    assert pacing["alpha"].markup == 0


def test_pacing_never_goes_below_the_bid_and_learns_nothing_from_silence(make_context, make_observation):
    pacing = RefusalPacing(make_context())
    seen = make_observation([[2.0] * 3])
    pacing.learn(seen, offer_to([0]), feedback_on(offer_to([0]), [True]))
    assert pacing.markup == 0
    pacing.markup = 0.4
    pacing.learn(seen, Offer.none(), feedback_on(Offer.none(), []))
    assert pacing.markup == 0.4


def test_pacing_takes_the_dearest_at_its_markup(make_context, make_observation):
    pacing = RefusalPacing(make_context())
    pacing.markup = 0.5
    made = pacing.act(make_observation([[2.0, 6.0, 4.0]], budget=12.5))
    assert made.clients.tolist() == [1, 0]  # 9 for the dearest; 6 no longer fits, 3 does
    assert made.payments.tolist() == [9.0, 3.0]


def test_pacing_raises_its_markup_where_clients_are_scarce(make_market):
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    results = evaluate(
        lambda seed: make_market(names, seed=seed, cores=1, rounds=15), {"x": everywhere("pacing")}, range(2)
    )
    served = results.served[0].sum(axis=(0, 2)) / results.wanted[0].sum(axis=(0, 2))
    assert served[0] < 0.9
    rich = evaluate(lambda seed: make_market(["alpha"], seed=seed, rounds=15), {"x": everywhere("pacing")}, [0])
    assert (rich.served == rich.wanted).all()
