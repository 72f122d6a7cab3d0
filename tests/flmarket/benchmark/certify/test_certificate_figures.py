"""The figures of a certificate show what the market's own code pays, bid by bid."""

from pathlib import Path

import numpy as np
import pytest

from des.money import to_micro
from flmarket.analysis.figures.drawing import FORMATS, save
from flmarket.benchmark.certify.certificate import AttackPlan, certify
from flmarket.benchmark.certify.certificate_figures import FACTORS, certificate_figures, utilities
from flmarket.benchmark.certify.sampling import AMPLE, SampledMarket, Sizes


def market(values: list[list[float]], costs: list[list[float]]) -> SampledMarket:
    return SampledMarket(0, to_micro(np.array(values)), to_micro(np.array(costs)), np.full(len(values), AMPLE), 1)


def test_under_a_posted_price_utility_is_price_less_cost_up_to_a_bid_of_the_price() -> None:
    """5,000 images at 0.0004 are 2 money; the client is worth 3 and its work costs it 1."""
    plan = AttackPlan("posted-price", {"price_per_sample": 0.0004})
    [curve] = utilities(plan, market([[3.0]], [[1.0]]))
    assert curve == pytest.approx(np.where(FACTORS <= 2, 1.0, 0.0))


def test_paid_as_offered_who_asks_too_much_has_nothing() -> None:
    """Two services offer the one client 3 and 2 for work that costs it 1; it takes the better offer."""
    [curve] = utilities(AttackPlan("pay-as-offered"), market([[3.0], [2.0]], [[1.0], [1.0]]))
    assert curve == pytest.approx(np.full(len(FACTORS), 2.0))  # until 3, which is beyond the factors
    [curve] = utilities(AttackPlan("pay-as-offered", rounds=2), market([[2.0], [0.5]], [[1.0], [1.0]]))
    assert curve == pytest.approx(np.where(FACTORS <= 2, 2.0, 0.0))  # two rounds of 2 - 1


@pytest.mark.slow
def test_bars_are_payments_costs_and_budgets(tmp_path: Path) -> None:
    certificate = certify(AttackPlan("uniform-price", shape=Sizes(2, 8, 1), markets=3, tries=3))
    _, rationality, budgets = (it.draw().axes[0] for it in certificate_figures(certificate))
    paid, cost = ([bar.get_height() for bar in bars] for bars in rationality.containers)
    assert len(paid) == len(cost) > 0
    assert all(price >= own for price, own in zip(paid, cost, strict=True))
    spent, limits = ([bar.get_height() for bar in bars] for bars in budgets.containers)
    assert len(spent) == len(limits) == 3
    assert sum(spent) >= sum(paid) > 0
    assert all(0 <= one <= most for one, most in zip(spent, limits, strict=True))
    names = [f"uniform-price-{it}.{suffix}" for it in ("utility", "rationality", "budgets") for suffix in FORMATS]
    assert [it.name for it in save(certificate_figures(certificate), tmp_path)] == names


def test_budgets_that_never_bind_are_not_drawn() -> None:
    plan = AttackPlan("uniform-price", shape=Sizes(2, 2, 1, budgets=False), markets=2, tries=3)
    *_, budgets = certificate_figures(certify(plan))
    assert [it.get_label() for it in budgets.draw().axes[0].containers] == ["paid"]
