"""The rule among which best responses are searched: it can be the heuristics, and it never breaks a constraint."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offer_rule import NAMES, STARTS, WIDTH, Seen, Weights, offers, standardised_rows

from des.observation import Observation
from fl.arithmetic.ordered_sums import standardised
from fl.arithmetic.streams import stream_key
from learning.policies.greedy import QualityPerCost
from learning.policies.hqfa import HighQualityFirst
from learning.policies.lcfa import LowCostFirst
from learning.policies.outbid import OutbidBids
from learning.policy import Policy, PolicyContext

CONTEXT = PolicyContext("s1", 3, 12, 2, 80, 20.0, 0.97, 60.0)


def some(rng: np.random.Generator, rows: int = 5, services: int = 3, clients: int = 12) -> Seen:
    """The view of some services, without ties."""
    there = np.arange(clients) < rng.integers(2, clients + 1, size=(rows, 1))
    bids = rng.integers(1, 10_000_000, size=(rows, services, clients)) * there[:, None]
    return Seen(
        dqi=rng.random((rows, clients)) * there,
        bids=bids,
        seats=rng.integers(services, size=rows),
        available=there & (rng.random((rows, clients)) < 0.8),
        clients=there,
        budget=rng.integers(0, 40_000_000, size=rows),
        cores=rng.integers(1, 4, size=rows),
        time=rng.random(rows),
    )


def observation(seen: Seen, row: int) -> Observation:
    """The observation of a policy in the place of a row, all of whose clients are there."""
    return Observation(
        round=1, rounds=80, service=f"s{seen.seats[row]}", services=tuple(f"s{m}" for m in range(seen.bids.shape[1])),
        dqi=seen.dqi[row], bids=seen.bids[row] / 1_000_000, budget=int(seen.budget[row]) / 1_000_000,
        cores=int(seen.cores[row]), accuracy=0.5, target_accuracy=0.97, key=stream_key(0, "policy", "s", 1),
        offline=frozenset(np.flatnonzero(~seen.available[row]).tolist()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "policy"), [("lcfa", LowCostFirst), ("hqfa", HighQualityFirst), ("outbid", OutbidBids)]
)
def test_the_rule_can_be_a_heuristic(start: str, policy: type[Policy]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        seen = some(rng)
        seen = replace(seen, clients=np.ones_like(seen.clients), bids=np.maximum(seen.bids, 1))
        weights = replace(STARTS[start], reach=1e9) if start == "outbid" else STARTS[start]
        row, client, payment = offers(weights, seen)
        for it in range(len(seen.seats)):
            expected = policy(CONTEXT).act(observation(seen, it))
            assert client[row == it].tolist() == expected.clients.tolist()
            assert (payment[row == it] / 1_000_000).tolist() == expected.payments.tolist()


def test_quality_per_cost_is_near_but_not_the_same() -> None:
    """Greedy divides where the rule subtracts."""
    seen = some(np.random.default_rng(2), rows=1)
    seen = replace(seen, clients=np.ones_like(seen.clients), bids=np.maximum(seen.bids, 1))
    _, client, _ = offers(STARTS["greedy"], seen)
    assert set(client.tolist()) & set(QualityPerCost(CONTEXT).act(observation(seen, 0)).clients.tolist())


points = st.lists(st.floats(-4, 4), min_size=WIDTH, max_size=WIDTH)


@given(points, st.integers(0, 2**32))
def test_offers_keep_all_constraints_and_rows_do_not_touch_each_other(point: list[float], seed: int) -> None:
    seen = some(np.random.default_rng(seed))
    weights = np.tile(point, (len(seen.seats), 1))
    row, client, payment = offers(Weights.of(weights), seen)
    assert (np.diff(row) >= 0).all()
    assert seen.available[row, client].all()
    assert (payment >= seen.bids[row, seen.seats[row], client]).all()
    assert len(set(zip(row.tolist(), client.tolist(), strict=True))) == len(row)
    assert (np.bincount(row, payment, minlength=len(seen.seats)) <= seen.budget).all()
    for it in range(len(seen.seats)):
        alone = Seen(*(getattr(seen, name)[[it]] for name in Seen.__dataclass_fields__))
        _, chosen, paid = offers(Weights(*point), alone)
        assert chosen.tolist() == client[row == it].tolist()
        assert paid.tolist() == payment[row == it].tolist()


def test_shares_of_clients_and_budget_are_limits() -> None:
    seen = some(np.random.default_rng(3), rows=40)
    row, _, payment = offers(Weights(clients=0.25, budget=0.5), seen)
    assert (np.bincount(row, payment, minlength=40) <= seen.budget / 2).all()
    assert (np.bincount(row, minlength=40) <= np.ceil(seen.clients.sum(axis=1) / 4)).all()
    assert not len(offers(Weights(clients=-1.0), seen)[0])


def test_all_starts_are_rules() -> None:
    assert len(NAMES) == WIDTH
    assert all(isinstance(start, Weights) for start in STARTS.values())


@pytest.mark.parametrize("size", [1e-3, 1.0, 60.0, 1e6, 1e9 / 3])
@pytest.mark.parametrize(("gap", "differ"), [(0.0, False), (1e-15, False), (1e-4, True)])
def test_one_market_and_many_agree_on_what_is_equal(size: float, gap: float, *, differ: bool) -> None:
    """Both give zeros, or the same up to the order of their sums, whatever the unit of the values."""
    values = np.full(49, size)
    values[0] += gap * max(1.0, size)
    one = standardised(values)
    np.testing.assert_allclose(standardised_rows(values[None], np.ones((1, 49), dtype=bool))[0], one, rtol=1e-6)
    assert one.any() == differ
