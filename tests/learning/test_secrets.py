"""Policies, agents and environments in markets that disclose less: they see no more, and read nothing into zeros."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.clients.disclosure import Disclosure
from des.money import to_micro
from des.offer_checks import check_offer
from learning.mahdrl.agent import Brain, random_offer
from learning.mahdrl.market_model import ActiveRivals
from learning.mahdrl.planner import OVERBIDS, price_levels
from learning.play_round import play_round
from learning.policy import POLICIES
from learning.seats import seat

SECRETS = Disclosure(public_bids=False, dqi_rank=True, dqi_noise=0.2)
LOOKS_AT_RIVALS = {"outbid", "mahdrl", "mahdrl-single"}
"""Built-in policies that look at rivals' bids where they are public."""

OF_PAPER = {"mahdrl-paper"}
"""Plays only the services that it was trained for, those of the scenario ``paper``."""


def require_valid(offer, seen):
    bids, budget = to_micro(seen.own_bids), to_micro(seen.budget)
    check_offer(offer, policy="?", service=seen.service, round_=1, bids=bids, budget=budget)


def listed(offer):
    return list(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True))


@pytest.mark.parametrize("policy", sorted(set(POLICIES.builtin) - LOOKS_AT_RIVALS - OF_PAPER))
def test_hidden_bids_change_no_decision_of_policies_that_do_not_look_at_them(make_market, policy):
    def offers(*, public):
        market = make_market(rounds=3, cost_noise=0.6, disclosure=Disclosure(public_bids=public))
        policies = seat(market, dict.fromkeys(["alpha", "beta", "gamma"], policy))
        return [play_round(market, policies).offers for _ in range(3)]

    assert offers(public=True) == offers(public=False)


def test_the_privileged_see_the_truth_whatever_services_see(make_market):
    """That is what the mark in the tables says."""
    market = make_market(cost_noise=0.6, disclosure=SECRETS)
    seat(market, {"alpha": "d-first"})
    observed, world = market.open_round(), market.population.draw(1)
    assert (observed["alpha"].privileged.data_size == world.data_size[0]).all()
    assert (observed["alpha"].privileged.emd == world.emd[0]).all()
    assert observed["beta"].privileged is None
    assert POLICIES.load("d-first").privileged


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 1)), min_size=3, max_size=8), st.integers(1, 3))
def test_what_rivals_are_asked_has_no_influence_where_it_is_hidden(make_observation, make_context, clients, cores):
    """Zeros of rivals that are hidden decide as any other numbers there would."""
    own, dqi = ([round(client[i], 6) for client in clients] for i in (0, 1))
    decided = []
    for others in (0.0, 1.0, 50.0):
        table = [own, *[[others] * len(own)] * 3]
        seen = replace(make_observation(table, dqi, cores=cores), bids_public=False)
        offers = [POLICIES.create(name, make_context(len(own), services=4)).act(seen) for name in ("outbid", "mahdrl")]
        for offer in offers:
            require_valid(offer, seen)
        decided.append([listed(offer) for offer in offers])
    assert decided[0] == decided[1] == decided[2]


def test_outbid_pays_the_bids_if_it_cannot_know_what_to_beat(make_observation, make_context):
    seen = make_observation([[2.0, 3.0], [9.0, 1.0]], [0.1, 0.9])
    context = make_context(2, services=2)
    assert listed(POLICIES.create("outbid", context).act(seen)) == [(1, 3.0), (0, 9.000001)]
    hidden = replace(seen, bids=np.array([[2.0, 3.0], [0.0, 0.0]]), bids_public=False)
    assert listed(POLICIES.create("outbid", context).act(hidden)) == listed(
        POLICIES.create("hqfa", context).act(hidden)
    )


def test_agents_take_hidden_rivals_for_services_that_are_asked_what_they_are_asked(make_observation):
    """All may be there: that no bid is seen does not mean that nobody bids."""
    seen = make_observation([[2.0, 6.0], [0.0, 0.0], [0.0, 0.0]])
    assert len(ActiveRivals.of(seen)) == 0, "public zeros: the others have left"
    hidden = replace(seen, bids_public=False)
    rivals = ActiveRivals.of(hidden)
    assert rivals.bids.tolist() == [[4.0, 4.0]] * 2
    assert rivals.highest == 6.0
    levels = price_levels(hidden, rivals.bids)
    assert levels.tolist() == [
        [2.0, 4.000001, *(pytest.approx(4.0 * factor) for factor in OVERBIDS)],
        [6.0, 6.0, *(pytest.approx(6.0 * factor) for factor in OVERBIDS)],
    ]
    assert price_levels(replace(hidden, cores=3), rivals.bids).tolist() == [[2.0], [6.0]], "K rivals or more to lose to"


def test_agents_that_learn_nothing_yet_explore_within_the_rules(make_market):
    market = make_market(cost_noise=0.6, disclosure=SECRETS, cores=1, rounds=1)
    rng = np.random.default_rng(1)
    brain = Brain.initial(rng)
    for seen in market.open_round().values():
        for _ in range(20):
            require_valid(random_offer(seen, rng), seen)
        require_valid(brain.decide(seen), seen)


@pytest.mark.parametrize("flat", [False, True], ids=["dict", "flat"])
def test_environments_show_what_services_see(make_market, flat):
    environment = pytest.importorskip("learning.environments.parallel_env", reason="needs the extra rl")

    def factory(seed):
        return make_market(seed=seed, rounds=4, cost_noise=0.6, disclosure=SECRETS, targets={"beta": 0.15})

    env = environment.MarketEnv(factory, flat=flat)
    observations, _ = env.reset(seed=1)
    left = False
    while env.agents:
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen)
            if not flat:
                assert (seen["bids"][1:] == 0).all()
                assert (seen["bids"][0] > 0).all() == (agent in env.agents)
                assert seen["dqi"].min() == 0
                assert seen["dqi"].max() == 1
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, _, terminated, *_ = env.step(actions)
        left = left or any(terminated.values())
    for agent, seen in observations.items():
        assert env.observation_space(agent).contains(seen), "also what a next round would show"
    assert left or flat
