"""What every mechanism that comes with flmarket keeps, whatever anybody reports: property tests.

A client is paid at least what it asks, and a service pays at most what it offers (individual rationality); what
services pay is what clients get, and within the budgets (budget balance); and nobody works on more cores than it has.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import MECHANISMS
from flmarket.benchmark.certify.players import SIDES, Bench
from flmarket.benchmark.certify.sampling import IMAGES, SampledMarket
from support.tiers import examples

ALL: list[tuple[str, dict[str, Any], int]] = [
    ("pay-as-offered", {}, 60),
    ("uniform-price", {}, 60),
    ("posted-price", {"price_per_sample": 1.5 / IMAGES}, 60),
    ("proportional-share", {}, 100),
    ("iterated", {"steps": 4}, 40),
    ("vcg", {"side": "clients"}, 8),
    ("vcg", {"side": "services"}, 8),
    ("fair-queue", {}, 60),
    ("score-auction", {"payment": "first-score"}, 60),
    ("score-auction", {"payment": "second-score"}, 100),
    ("scheduler", {"order": "random"}, 40),
]

amounts = st.one_of(st.integers(0, 5_000_000), st.sampled_from([0, 1, 2, 3, 1_000_000, 1_500_000, 2_000_000]))
"""Amounts between which ties and remainders of rounding are common."""


@st.composite
def markets(draw: st.DrawFn) -> SampledMarket:
    services, clients = draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def table() -> Any:
        rows = st.lists(st.lists(amounts, min_size=clients, max_size=clients), min_size=services, max_size=services)
        return np.array(draw(rows), dtype=np.int64)

    budgets = draw(st.lists(st.integers(0, 12_000_000), min_size=services, max_size=services))
    seed, cores = draw(st.integers(0, 1000)), draw(st.integers(1, 3))
    return SampledMarket(seed, table(), table(), np.array(budgets, dtype=np.int64), cores)


def test_all_mechanisms_are_here() -> None:
    assert {name for name, _, _ in ALL} == set(MECHANISMS.builtin)


@pytest.mark.hypothesis
@pytest.mark.parametrize(("name", "options", "number"), ALL)
def test_individual_rationality_and_budget_balance(name: str, options: dict[str, Any], number: int) -> None:
    @examples(number)
    @given(market=markets())
    def holds(market: SampledMarket) -> None:
        played = Bench(MECHANISMS.create(name, **options), market).play()
        price, served = played.price, played.served
        assert (price[served] >= market.costs[served]).all()
        assert (price[served] <= played.offered[served]).all()
        assert (played.offered[served] >= 0).all()
        assert (price[~served] == 0).all()
        assert (price.sum(axis=1) <= market.budgets).all()
        assert (served.sum(axis=0) <= market.cores).all()
        for side, count in zip(SIDES, price.shape, strict=True):  # the truth never costs anybody anything
            assert min(played.gain(side, party, market) for party in range(count)) >= 0

    holds()
