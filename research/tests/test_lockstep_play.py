"""Policies that play in lockstep play what they play one market after another: the same to the last bit."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import lockstep_play as play
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.market import Market
from des.observation import Feedback, Observation, Offer
from des.offer_checks import OfferError
from flmarket.core.plugin_errors import PluginFailed
from learning import evaluation
from learning.client_selection.selection import fill_budget
from learning.evaluation import Entrant, EvaluationResults, everywhere, lineup
from learning.lockstep.lockstep import Lockstep
from learning.lockstep.market_kinds import LockstepError
from learning.lockstep.offers import Offers
from learning.policy import Policy, PolicyContext
from scenarios.build import market_factory
from scenarios.loader import load
from support.markets import factory, kinds, plain
from support.tiers import examples

POLICIES = ["random", "hqfa", "greedy", "d-first", "ucb", "oort", "pacing", "worth", "oracle", "outbid", "contribution"]
"""Such as learn, such as see what is private, and such as see others' offers."""


def assert_same(one: EvaluationResults, other: EvaluationResults) -> None:
    for name in EvaluationResults.__dataclass_fields__:
        left, right = getattr(one, name), getattr(other, name)
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, name


@pytest.mark.slow
@examples(60)
@given(kind=kinds(), seeds=st.lists(st.integers(0, 2**63), min_size=1, max_size=3, unique=True), data=st.data())
def test_evaluations_in_lockstep_are_those_one_after_another(
    kind: dict[str, Any], seeds: list[int], data: st.DataObject
) -> None:
    names = [spec.name for spec in kind["services"]]
    seats = st.fixed_dictionaries({name: st.sampled_from(POLICIES) for name in names})
    entrants = {"mixed": lineup(data.draw(seats)), "same": everywhere(data.draw(st.sampled_from(POLICIES)))}
    make = factory(kind)
    assert_same(play.evaluate(make, entrants, seeds), evaluation.evaluate(make, entrants, seeds))


@pytest.mark.parametrize("policy", ["mahdrl", "stackelberg", "fmore", "dearest", "lcfa"])
def test_the_other_policies_in_a_contested_market(policy: str) -> None:
    make = market_factory(load("scarce", {"training.backend": "surrogate", "rounds": 6}))
    entrants = {policy: everywhere(policy)}
    assert_same(play.evaluate(make, entrants, [4, 5]), evaluation.evaluate(make, entrants, [4, 5]))


class Recorder(Policy):
    """Offers at random, and keeps all that it learns."""

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(context)
        self.told: list[tuple[Observation, Offer, Feedback]] = []

    def act(self, observation: Observation) -> Offer:
        clients = np.flatnonzero(observation.available & (observation.rng().random(observation.clients) < 0.6))[::-1]
        paid = observation.own_bids[clients] * 1.25
        return Offer(clients, paid) if paid.sum() <= observation.offer_limit else Offer.none()

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self.told.append((observation, offer, feedback))


def recording(kept: list[Recorder]) -> Entrant:
    def seats(market: Market) -> Mapping[str, Policy]:
        made = {spec.name: Recorder(PolicyContext(spec.name, 1, 6, 2, 4, 20.0, 0.9, 60.0)) for spec in market.services}
        kept.extend(made.values())
        return made

    return seats


@examples(40)
@given(kind=kinds(), seed=st.integers(0, 2**63))
def test_policies_are_told_the_same(kind: dict[str, Any], seed: int) -> None:
    together: list[Recorder] = []
    alone: list[Recorder] = []
    play.evaluate(factory(kind), {"recorders": recording(together)}, [seed])
    evaluation.evaluate(factory(kind), {"recorders": recording(alone)}, [seed])
    for one, other in zip(together, alone, strict=True):
        assert len(one.told) == len(other.told)
        for (seen, _, left), (also_seen, _, right) in zip(one.told, other.told, strict=True):
            assert (seen.key, seen.accuracy, seen.total_left) == (
                also_seen.key,
                also_seen.accuracy,
                also_seen.total_left,
            )
            for name in Feedback.__dataclass_fields__:
                assert np.array_equal(getattr(left, name), getattr(right, name), equal_nan=name == "losses"), name


class Private(Policy):
    """Learns by a function that it alone has, and offers more the more it has been served."""

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(context)
        self.served = 0
        self.learn = self.count  # type: ignore[method-assign]

    def count(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self.served += int(feedback.served.sum())

    def act(self, observation: Observation) -> Offer:
        order = np.argsort((np.arange(observation.clients) + self.served) % observation.clients)
        return fill_budget(order, observation.own_bids, observation.budget, available=observation.available)


def test_a_policy_may_learn_by_a_function_of_its_own() -> None:
    def seats(market: Market) -> Mapping[str, Policy]:
        return {spec.name: Private(PolicyContext(spec.name, 1, 6, 2, 4, 20.0, 0.9, 60.0)) for spec in market.services}

    make = market_factory(load("paper", {"training.backend": "surrogate", "rounds": 4}))
    assert_same(play.evaluate(make, {"own": seats}, [0]), evaluation.evaluate(make, {"own": seats}, [0]))
    with closing(make(0)) as market:
        assert not any(policy.resumable for policy in seats(market).values())


class Writer(Recorder):
    """Changes what it sees, which is everybody's."""

    def act(self, observation: Observation) -> Offer:
        observation.bids[0, 0] = 0.0
        return Offer.none()


@pytest.mark.parametrize("module", [play, evaluation])
def test_what_policies_see_cannot_be_written_to(module: Any) -> None:
    def seats(market: Market) -> dict[str, Policy]:
        found = {**recording([])(market)}
        return {**found, "s1": Writer(next(iter(found.values())).context)}

    with pytest.raises(PluginFailed, match="read-only"):
        module.evaluate(factory(plain()), {"mine": seats}, [0])


def test_more_games_than_are_played_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "TOGETHER", 3)
    entrants = {"hqfa": everywhere("hqfa"), "random": everywhere("random")}
    told: list[tuple[str, int]] = []
    results = play.evaluate(factory(plain()), entrants, range(4), lambda name, seed: told.append((name, seed)))
    assert_same(results, evaluation.evaluate(factory(plain()), entrants, range(4)))
    assert told == [(name, seed) for name in entrants for seed in range(4)]


class Greedy(Recorder):
    """Offers a client less than it asks."""

    def act(self, observation: Observation) -> Offer:
        return Offer(np.array([1]), np.array([0.0]))


class Broken(Recorder):
    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        raise KeyError("mine")


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (
            Greedy,
            OfferError,
            r"policy 'by hand' of service 's1', round 1, client 1: the payment 0.000000 is below the bid",
        ),
        (Broken, PluginFailed, r"policy 'by hand' of service 's1' failed to learn in round 1: KeyError"),
    ],
)
@pytest.mark.parametrize("module", [play, evaluation])
def test_a_policy_that_fails_is_named_as_it_is_alone(module: Any, wrong: Any, error: Any, text: str) -> None:
    def seats(market: Market) -> dict[str, Policy]:
        found = {**recording([])(market)}
        found["s1"] = wrong(next(iter(found.values())).context)
        return found

    with pytest.raises(error, match=text):
        module.evaluate(factory(plain()), {"mine": seats}, [0])


def test_what_cannot_be_played() -> None:
    with pytest.raises(LockstepError, match="does not clear client by client"):
        play.evaluate(factory(plain(mechanism=("iterated", {}))), {"hqfa": everywhere("hqfa")}, [0])
    with pytest.raises(ValueError, match="at least one entrant"):
        play.evaluate(factory(plain()), {}, [0])
    with pytest.raises(ValueError, match="entrant 'half' has no policy for s1, s2"):
        play.evaluate(factory(plain()), {"half": lineup({"s0": "hqfa"})}, [0])


def test_a_service_that_is_decided_for_jointly_is_seen_by_those_who_see_offers() -> None:
    """The same offers, made by a policy and made jointly, with an oracle among the rivals: the same market."""
    make = factory(plain())
    entrant = lineup({"s0": "oracle", "s1": "lcfa", "s2": "random"})
    seeds = [3, 4, 5]
    seatings = [play.seating(make, seed, "mine", entrant) for seed in seeds]
    markets = Lockstep([make] * len(seeds), seeds)
    seats = np.array([1, 1, 1])

    def decide(view: Any) -> Offers:
        made = [
            (b, seatings[b].policies["s1"].act(play.observations(markets, view, b, seeds[b])["s1"]))
            for b in range(len(seeds))
            if view.asked[b, 1]
        ]
        count = [len(offer.clients) for _, offer in made]
        return Offers(
            np.repeat([b for b, _ in made], count),
            np.ones(sum(count), dtype=np.int64),
            np.concatenate([offer.clients for _, offer in made]),
            np.concatenate([view.bids[b, 1, offer.clients] for b, offer in made]),  # it pays the bids
        )

    joint = play.play(markets, seeds, seatings, play.Joint(seats, decide))
    alone = evaluation.evaluate(make, {"mine": entrant}, seeds)
    assert np.array_equal(joint[:, 0], alone.accuracy[0])
    assert np.array_equal(joint[:, 5], alone.served[0])
