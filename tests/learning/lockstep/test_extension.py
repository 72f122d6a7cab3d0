"""Lockstep gives the same bytes whether the compiled extension plays or NumPy, and with vectors of any width."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from hypothesis import given
from hypothesis import strategies as st

from des import allocation
from fl.arithmetic import draws, elementary
from fl.arrays import AnyArray
from learning.environments import actions as selection
from learning.lockstep import lockstep as curves
from learning.lockstep import vector_env as rows
from learning.lockstep.lockstep import Lockstep
from learning.lockstep.offers import Offers
from learning.lockstep.vector_env import VectorMarketEnv
from learning.seats import MarketFactory
from scenarios.build import market_factory
from scenarios.loader import load
from support.implementations import vectors, without_extension
from support.markets import factory, kinds, plain
from support.tiers import examples

MODULES = (allocation, curves, draws, elementary, rows, selection)


def played(factories: list[MarketFactory], seeds: list[int], draws: int) -> Iterator[AnyArray]:
    """Play markets with random offers, many of them equal, and yield all that is seen and comes of it."""
    rng, markets = np.random.default_rng(draws), Lockstep(factories, seeds)
    while not markets.finished.all():
        view = markets.open()
        wanted = view.available & (rng.random(view.bids.shape) < 0.6)
        made = Offers.by_payment(wanted, 1.0 + rng.integers(0, 3, view.bids.shape) / 2, view.bids, view.budget)
        yield from (view.bids, view.dqi, made.market, made.service, made.client)
        closed = markets.close(made)
        yield from (closed.reward, closed.status, closed.served, closed.spent)
        yield from (closed.fate.awarded, closed.fate.served, closed.fate.price[closed.fate.awarded])
        yield from (markets.curves.accuracy, markets.curves.u, markets.paid)


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


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    native = pytest.importorskip("fl._fused")
    whole, parts, flags = np.zeros(3, dtype=np.int64), np.zeros(3), np.zeros(3, dtype=np.bool_)
    for call in (
        lambda: native.follow(np.zeros((18, 3)), parts, parts, parts, whole, whole, parts, whole[:2], parts, parts),
        lambda: native.follow(np.zeros((17, 3)), parts, parts, parts, whole, whole, parts, whole, parts, parts),
        lambda: native.decode(parts, flags, flags, 2.0, flags, parts),
        lambda: native.observe(1, 1, whole + 3, np.zeros(3, "f4"), np.zeros(3, "f4"), flags[:1], np.zeros(9, "f4")),
        lambda: native.observe(1, 1, whole, np.zeros(3, "f4"), np.zeros(3, "f4"), flags[:1], np.zeros(5, "f4")),
        lambda: native.quantiles(parts, parts[:2].copy()),
        lambda: native.rounded(parts, parts.copy(), flags[:2].copy()),
    ):
        with pytest.raises(ValueError, match=r"fit each other|another length"):
            call()
