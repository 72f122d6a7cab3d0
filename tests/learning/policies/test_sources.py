"""Policies held against the formulas of the papers that they name, worked out by hand or by other means.

docs/fidelity.md lists them. Where a policy departs from a formula, a test holds by how much in an example.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from des.allocation import NO_CORE
from des.mechanism import clearing_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import MICRO
from des.observation import Observation
from learning.client_selection.pricing import best_levels, level_rows, next_price_of_money, share_of_rounds_left
from learning.policies.bwk import ContextualKnapsack
from learning.policies.contribution import Contribution
from learning.policies.mirror import isotonic
from learning.policies.oort import OortLike
from learning.policies.oracle import critical_prices
from learning.policies.pacing import RefusalPacing
from learning.policies.resolving import price_of_money
from learning.policies.stackelberg import lead
from learning.policies.ucb import BudgetedUCB, features
from learning.policy import PolicyContext
from support.books import book_of
from support.feedback import feedback_on, offer_to
from support.tiers import examples

MakeContext = Callable[..., PolicyContext]
MakeObservation = Callable[..., Observation]

# ---- bwk: Agrawal and Devanur (2016)


def test_bwk_s_bounds_and_index_by_hand(make_context: MakeContext, make_observation: MakeObservation) -> None:
    """``x b / M -+ width sqrt(x x / M)`` with M = I + sum of x x: alike clients have the context (1, markup, 0, 0).

    Two offers of the bid are refused: M is 1 + 2 for the constant, 1 for the markup, whose prior is 0.3.
    """
    bandit = ContextualKnapsack(make_context(2), exploration=0.5, rate=0.0)
    seen = make_observation([[2.0, 2.0]])
    bandit.learn(seen, offer_to([0, 1], 2.0), feedback_on(offer_to([0, 1], 2.0), [False, False]))
    low, high = (bound.reshape(2, -1)[0] for bound in bandit.chances(level_rows(seen)))
    estimate = [0.85 / 3 + 0.3 * markup for markup in (0.0, 0.5)]
    spread = [0.5 * sqrt(1 / 3 + markup**2) for markup in (0.0, 0.5)]
    assert low[[0, -1]].tolist() == pytest.approx([max(0.0, estimate[0] - spread[0]), estimate[1] - spread[1]])
    assert high[[0, -1]].tolist() == pytest.approx([estimate[0] + spread[0], estimate[1] + spread[1]])
    # Both are worth the mean bid, 2: value+ * chance+ - price of money * price * chance-, at the best price.
    prices = 2.0 * (1 + np.array([0.0, 0.05, 0.1, 0.25, 0.5]))
    index = (2.0 * high - 1.0 * prices * low).max()
    assert bandit._plan(seen)[1].tolist() == pytest.approx([index, index])


# ---- mirror: Balseiro, Lu and Mirrokni (2023); Ayer et al. (1955)


@pytest.mark.parametrize("wanted", [0.0, 5.0, 10.0, 14.0, 20.0])
def test_the_price_of_money_is_a_step_of_mirror_descent_on_the_dual(wanted: float) -> None:
    """The mu that minimises ``eta (share - wanted) mu + V(mu, old)``, V the divergence of ``mu log mu``."""
    share, rate, old = 10.0, 0.1, 1.5
    step = rate / share * (share - wanted)
    found = minimize_scalar(
        lambda mu: step * mu + mu * log(mu / old) - mu + old,
        bounds=(0.5, 4.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert next_price_of_money(old, rate, wanted, share) == pytest.approx(found.x, rel=1e-6)


def test_a_step_of_the_price_of_money_is_cut() -> None:
    """Where five times the share is wanted, mirror descent goes to exp(0.1 * 4), and the policy to exp(0.1)."""
    assert next_price_of_money(1.0, 0.1, 50.0, 10.0) == pytest.approx(exp(0.1))
    assert exp(0.1 * (50 / 10 - 1)) / next_price_of_money(1.0, 0.1, 50.0, 10.0) == pytest.approx(1.35, abs=0.005)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=7))
def test_shares_of_wins_are_those_of_ayer_s_formula(counts: list[tuple[int, int]]) -> None:
    """The i-th is the highest, over r <= i, of the lowest share, over s >= i, of wins among offers r to s."""
    wins, offers = (np.array(it, dtype=np.float64) for it in zip(*((w, w + n) for w, n in counts), strict=True))
    n = len(wins)
    expected = [
        max(min(wins[r : s + 1].sum() / offers[r : s + 1].sum() for s in range(i, n)) for r in range(i + 1))
        for i in range(n)
    ]
    assert isotonic(wins, offers).tolist() == pytest.approx(expected)


# ---- oort: Lai et al. (2021)


def test_oort_s_mean_loss_stands_for_the_root_of_the_mean_square(make_context: MakeContext) -> None:
    """Two images with losses 0 and 2: Oort's utility is 2 sqrt((0 + 4) / 2) = 2.83, that of the mean loss 2 * 1."""
    theirs, ours = (2 * loss for loss in (sqrt((0**2 + 2**2) / 2), (0 + 2) / 2))
    assert theirs / ours == pytest.approx(sqrt(2))
    oort = OortLike(make_context())
    # Beside clients of 1.2 and 0 a loss of sqrt(2) would be the highest; one of 1 is not.
    oort._losses, oort._served = np.array([1.0, 1.2, 0.0]), np.array([1, 1, 1])
    assert oort._utilities(np.arange(3), np.full(3, 2.0), round_=1).argmax() == 1
    oort._losses[0] = sqrt(2)
    assert oort._utilities(np.arange(3), np.full(3, 2.0), round_=1).argmax() == 0


def test_oort_s_utilities_are_scaled_by_what_is_clipped_and_those_of_its_public_code_by_all(
    make_context: MakeContext,
) -> None:
    """Of 1, 2 and 3 the public code clips at the third, and maps 2 to (2 - .999) / (3 - .999) = .500; here 1 / 1.9."""
    oort = OortLike(make_context())
    oort._losses, oort._served = np.array([1.0, 2.0, 3.0]), np.array([1, 1, 1])
    scaled = oort._utilities(np.arange(3), np.ones(3), round_=1)  # in the first round nothing is stale
    assert scaled[1] == pytest.approx(1 / 1.9)
    assert scaled[1] - (2 - 0.999) / (3 - 0.999) == pytest.approx(0.026, abs=5e-4)


def test_oort_s_exploration_decays_from_the_second_round_on_and_that_of_its_public_code_from_the_first(
    make_context: MakeContext,
) -> None:
    share = [OortLike(make_context())._share(round_) for round_ in (1, 2, 3, 500)]
    assert share == pytest.approx([0.9, 0.9 * 0.98, 0.9 * 0.98**2, 0.2])
    assert share[0] - 0.9 * 0.98 == pytest.approx(0.018)


# ---- pacing: Balseiro and Gur (2019)


@pytest.mark.parametrize("served", [[True, True], [True, False], [False, False]])
@pytest.mark.parametrize("old", [0.0, 0.01, 0.29])
def test_pacing_s_multiplier_is_a_projected_step(
    make_context: MakeContext, make_observation: MakeObservation, served: list[bool], old: float
) -> None:
    """``P(mu - eps (rho - z))`` on [0, limit], with the refusals that are tolerated as rho and their share as z."""
    pacing = RefusalPacing(make_context(), rate=0.2, tolerance=0.1, limit=0.3)
    pacing.markup = old
    pacing.learn(make_observation([[2.0] * 3]), offer_to([0, 1]), feedback_on(offer_to([0, 1]), served))
    target = old - 0.2 * (0.1 - (1 - np.mean(served)))
    nearest = minimize_scalar(lambda mu: (mu - target) ** 2, bounds=(0.0, 0.3), method="bounded")
    assert pacing.markup == pytest.approx(nearest.x, abs=1e-5)


# ---- resolving: the fluid relaxation of Jasin and Kumar (2012)


@examples(30)
@given(
    items=st.lists(
        st.lists(st.tuples(st.integers(1, 20), st.integers(1, 9)), min_size=2, max_size=2), min_size=1, max_size=6
    ),
    budget=st.integers(1, 30),
)
def test_the_price_of_money_solves_the_dual_of_the_fluid_program(items: list[Any], budget: int) -> None:
    """Clients at one of two prices each, within a budget, in parts: the dual's value is that of the program."""
    worth, prices = (np.array([[pair[k] for pair in pairs] for pairs in items]) for k in (0, 1))
    one_each = np.kron(np.eye(len(items)), np.ones((1, 2)))
    program = linprog(
        -worth.ravel().astype(float),
        A_ub=np.vstack([prices.ravel()[None, :], one_each]),
        b_ub=[budget, *[1.0] * len(items)],
    )
    money = price_of_money(worth.astype(np.float64), prices, budget)
    left = best_levels(worth.astype(np.float64), prices, money)[1]
    assert money * budget + np.maximum(left, 0.0).sum() == pytest.approx(-program.fun, abs=1e-6)


def test_what_is_left_of_the_money_is_spread_evenly_over_the_rounds_left(make_observation: MakeObservation) -> None:
    """The program of the rest of the run, solved again in each round: with all rounds alike, left / rounds left."""
    for round_, left in ((1, 80.0), (41, 13.0), (80, 0.5)):
        seen = replace(make_observation([[1.0]], round_=round_), total_left=left)
        assert share_of_rounds_left(seen, 0.0) == pytest.approx(left / (81 - round_))


# ---- stackelberg: backward induction


def test_the_leader_s_price_for_many_followers_is_that_of_the_closed_form() -> None:
    """Followers from 0 to ``most`` per quality, evenly: at a price r, a part r / most of the quality Q takes part.

    With a = Q / most, the leader's ``V log(1 + a r / u) - a r^2`` is highest where ``V = 2 r (u + a r)``.
    """
    count, most, value, unit = 4000, 5.0, 30.0, 2.0
    quality = np.full(count, 10.0 / count)
    bids = quality * most * (np.arange(count) + 1) / count
    paid = lead(bids, quality, 1e6, value, unit)
    a = 10.0 / most
    closed = (-unit + sqrt(unit**2 + 2 * a * value)) / (2 * a)
    assert paid[0] / MICRO / quality[0] == pytest.approx(closed, rel=2e-3)
    assert len(paid) / count == pytest.approx(closed / most, rel=2e-3)


# ---- ucb: Russac, Vernade and Cappé (2019); Qin, Chen and Zhu (2014)


def test_the_discounted_bounds_of_two_rounds_by_hand(
    make_context: MakeContext, make_observation: MakeObservation
) -> None:
    """Discounted by 1/2, with alike clients, whose features are (1, 0, 0, 0): one served, then two.

    V = 1/2 * 1 + 4 + 1 and V~ = 1/4 * 1 + 4 + 1, both with the ridge of 1; progress .1, then .4.
    """
    bandit = BudgetedUCB(make_context(), exploration=1.0, discount=0.5)
    error = 0.0
    for served, progress in (([True, False, False], 0.1), ([True, True, False], 0.4)):
        seen = make_observation([[2.0] * 3], accuracy=1 - exp(error))
        error -= progress
        bandit.learn(seen, offer_to([0, 1, 2]), feedback_on(offer_to([0, 1, 2]), served, accuracy=1 - exp(error)))
    estimate = (0.5 * 0.1 * 1 + 0.4 * 2) / 5.5
    noise = sqrt((0.5 * 0.1**2 + 0.4**2) / (0.5 + 1))  # ours: the size of a round's progress, for the source's beta
    expected = estimate + noise * sqrt(5.25) / 5.5
    assert bandit._bounds(features(seen)).tolist() == pytest.approx([expected] * 3)


# ---- contribution: Wang, Dang and Zhou (2019), by deletion


def test_where_progress_adds_up_estimates_become_what_leaving_a_client_out_loses(
    make_context: MakeContext, make_observation: MakeObservation
) -> None:
    """v(S) is the sum of what each of S brings: v(N) - v(N without c) is found from sums alone, as sets change."""
    brings = np.array([0.3, 0.1, 0.0, -0.1])
    loses = [brings.sum() - np.delete(brings, client).sum() for client in range(4)]
    policy, all_four = Contribution(make_context(4), rate=1.0), offer_to([0, 1, 2, 3], 2.0)
    rng, error = np.random.default_rng(1), 0.0
    for _ in range(120):
        served = rng.random(4) < 0.5
        seen = make_observation([[2.0] * 4], accuracy=1 - exp(error))
        after = error - float(brings[served].sum())
        policy.learn(seen, all_four, feedback_on(all_four, served.tolist(), 1 - exp(after)))
        error = after if after > -8 else 0.0  # begin again before the accuracy is 1
    assert policy.worth.tolist() == pytest.approx(loses, abs=1e-3)


# ---- oracle: critical values


@given(
    rivals=st.lists(st.dictionaries(st.integers(0, 2), st.integers(1, 9), min_size=1), max_size=4),
    cores=st.integers(1, 3),
    bid=st.integers(1, 9),
)
def test_a_critical_price_is_the_least_that_wins_in_every_draw(
    rivals: list[Mapping[int, int]], cores: int, bid: int
) -> None:
    """The auction itself is asked, with the draw against who pays: a micro-unit less loses, or is below the bid."""
    offers = [offer_to(list(it), [float(price) for price in it.values()]) for it in rivals]
    prices = critical_prices(np.full(3, bid * MICRO), offers, cores)

    def wins(client: int, price: int) -> bool:
        against = [(m + 1, c, float(p)) for m, it in enumerate(rivals) for c, p in it.items()]
        draws = [1.0, *[0.1 * m for m in range(len(rivals))]]  # the lowest goes first
        book = book_of(
            (0, client, price / MICRO), *against, cores=cores, draws=draws, budgets=[99.0] * (1 + len(rivals))
        )
        return bool(clearing_of(PayAsOffered(), book, 1).core[0] != NO_CORE)

    for client in range(3):
        price = int(prices[client])
        assert price >= bid * MICRO
        assert wins(client, price)
        assert price == bid * MICRO or not wins(client, price - 1)
