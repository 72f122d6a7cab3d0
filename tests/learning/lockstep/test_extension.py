"""Lockstep gives the same bytes whether the compiled extension plays or NumPy, and with vectors of any width."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from hypothesis import given
from hypothesis import strategies as st

from des import allocation
from des.ledger import LedgerError
from fl import draws, elementary, philox, selection
from fl.arrays import AnyArray
from fl.surrogate import Trained
from implementations import vectors, without_extension
from learning.lockstep import clearing, curves, offers, rounds, rows
from learning.lockstep.markets import Lockstep
from learning.lockstep.offers import LockstepOfferError, Offers, by_payment
from learning.lockstep.vector_env import VectorMarketEnv
from learning.seats import MarketFactory
from scenarios.factory import market_factory
from scenarios.loader import load
from support.markets import factory, kinds, plain
from support.tiers import examples

MODULES = (allocation, clearing, curves, draws, elementary, offers, philox, rounds, rows, selection)


def played(factories: list[MarketFactory], seeds: list[int], draws: int) -> Iterator[AnyArray]:
    """Play markets with random offers, many of them equal, and yield all that is seen and comes of it."""
    rng, markets = np.random.default_rng(draws), Lockstep(factories, seeds)
    while not markets.finished.all():
        view = markets.open()
        wanted = view.available & (rng.random(view.asks.shape) < 0.6)
        made = by_payment(wanted, 1.0 + rng.integers(0, 3, view.asks.shape) / 2, view.asks, view.budget)
        yield from (view.asks, view.available, view.dqi, view.budget, made.market, made.service, made.client)
        closed = markets.close(made)
        yield from (closed.reward, closed.status, closed.served, closed.spent, closed.asked)
        yield from (closed.fate.awarded, closed.fate.served, closed.fate.price[closed.fate.awarded])
        yield from (markets.curves.accuracy, markets.curves.u, markets.income, markets.paid)


def as_bytes(arrays: Iterator[AnyArray]) -> list[tuple[str, bytes]]:
    return [(array.dtype.str, array.tobytes()) for array in arrays]


@examples(40)
@given(
    kinds_=st.lists(kinds(), min_size=1, max_size=2),
    seeds=st.lists(st.integers(0, 2**63), min_size=2, max_size=5),
    draws=st.integers(0, 2**32),
)
def test_both_versions_play_the_same_rounds(kinds_: list[dict[str, Any]], seeds: list[int], draws: int) -> None:
    makes = [factory(kind) for kind in kinds_]
    factories = [makes[b % len(makes)] for b in range(len(seeds))]
    found = as_bytes(played(factories, seeds, draws))
    with without_extension(*MODULES):
        assert as_bytes(played(factories, seeds, draws)) == found


@pytest.mark.parametrize("width", [0, 1])
def test_vectors_of_any_width_play_the_same_rounds(width: int) -> None:
    factories, seeds = [factory(plain(rounds=9))] * 7, list(range(7))
    found = as_bytes(played(factories, seeds, 3))
    with vectors(width):
        assert as_bytes(played(factories, seeds, 3)) == found


def stepped(factories: list[MarketFactory]) -> Iterator[AnyArray]:
    """Step an environment through episodes with random actions, some of whose values stand at the bounds."""
    env, rng = VectorMarketEnv(factories), np.random.default_rng(0)
    yield env.reset(seed=5)[0]
    for _ in range(30):
        actions = np.clip(rng.uniform(-1.3, 1.3, env.action_space.shape), -1, 1).astype(np.float32)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        yield from (observations, rewards, terminated, truncated)
        yield from infos.values()


@pytest.mark.parametrize("names", [["paper"], ["paper", "quickstart"], ["paper-cores", "paper"]], ids="+".join)
def test_both_versions_make_the_same_observations(names: list[str]) -> None:
    scenarios = [load(name, ["training.backend=surrogate", "rounds=11"]) for name in names]
    makes = [market_factory(it.model_copy(update={"sweep": {}, "runs": []})) for it in scenarios]
    factories = [makes[b % len(makes)] for b in range(5)]
    found = as_bytes(stepped(factories))
    with without_extension(*MODULES):
        assert as_bytes(stepped(factories)) == found


BAD = [
    [(0, 0, 6, 9_000_000)],
    [(2, 0, 0, 9_000_000)],
    [(0, -1, 0, 9_000_000)],
    [(1, 2, 3, 1)],
    [(1, 0, 3, 9_000_000)] * 2,
    [(0, 1, 3, 15_000_000), (0, 1, 4, 15_000_000)],
    [(0, 1, 3, 21_000_000)],
    [(1, 0, 3, 9_000_000), (0, 0, 3, 9_000_000)],
]


@pytest.mark.parametrize("bad", BAD)
def test_both_versions_refuse_the_same_offers(bad: list[tuple[int, int, int, int]]) -> None:
    def refusal() -> str:
        markets = Lockstep([factory(plain())] * 2, [0, 1])
        markets.open()
        with pytest.raises(LockstepOfferError) as caught:
            markets.close(Offers(*np.array(bad, dtype=np.int64).T))
        return str(caught.value)

    found = refusal()
    with without_extension(*MODULES):
        assert refusal() == found


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("spent", "received", "problem"),
    [
        ([5, 9], [4, 10], None),
        ([5, 11], [6, 10], "more than its budget"),
        ([5, 9], [4, 9], "did not receive"),
        ([8, 6], [7, 7], "did not receive"),  # the first service has 107 for the whole run
    ],
)
def test_books_that_do_not_balance_are_refused(
    spent: list[int], received: list[int], problem: str | None, compiled: bool
) -> None:
    paid, income = np.array([[50, 100], [100, 50]]), np.array([[75, 75], [90, 60]])
    budget, total = np.full((2, 2), 10), np.array([[10**9, 10**9], [107, 10**9]])
    both = np.array([[0, 0], spent]), np.array([[0, 0], received])
    sums = clearing.Sums(both[0], both[0], Trained(*both[:1] * 4), both[1])
    with nullcontext() if compiled else without_extension(rounds):
        if problem is None:
            rounds.settle(sums, budget, total, paid, income)
            assert (paid[1].tolist(), income[1].tolist()) == ([105, 59], [94, 70])
            return
        with pytest.raises(LedgerError, match=problem):
            rounds.settle(sums, budget, total, paid, income)


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    native = pytest.importorskip("fl._fused")
    whole, parts, flags = np.zeros(3, dtype=np.int64), np.zeros(3), np.zeros(3, dtype=np.bool_)
    for call in (
        lambda: native.begin(
            flags, whole, whole, flags, 0, 1, whole.copy(), whole[:2].copy(), flags.copy(), flags.copy()
        ),
        lambda: native.settle(1, whole, whole[:2], whole, whole, whole.copy(), whole.copy()),
        lambda: native.proper(whole, whole, whole, whole[:2], whole, flags, whole, flags, flags, 9),
        lambda: native.totals(1, flags, *[whole] * 5, whole, whole, parts[:2], np.zeros((5, 1), int), parts[:1], whole),
        lambda: native.follow(np.zeros((18, 3)), parts, parts, parts, whole, whole, parts, whole[:2], parts, parts),
        lambda: native.follow(np.zeros((17, 3)), parts, parts, parts, whole, whole, parts, whole, parts, parts),
        lambda: native.decode(parts, flags, flags, 2.0, flags, parts),
        lambda: native.observe(1, 1, whole + 3, np.zeros(3, "f4"), np.zeros(3, "f4"), flags[:1], np.zeros(9, "f4")),
        lambda: native.observe(1, 1, whole, np.zeros(3, "f4"), np.zeros(3, "f4"), flags[:1], np.zeros(5, "f4")),
        lambda: native.powers(parts, parts[:2], parts.copy()),
        lambda: native.quantiles(parts, parts[:2].copy()),
        lambda: native.rounded(parts, parts.copy(), flags[:2].copy()),
    ):
        with pytest.raises(ValueError, match=r"fit each other|another length"):
            call()
