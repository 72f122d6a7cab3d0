"""Readings of Algorithm 1: what a pick of the serial one sees and is credited with, and that they learn as they did."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from algorithm1_readings import Reading, Slot, best_client, fill, learner_of, train_reading
from safetensors.numpy import load_file
from torch import ones, tensor
from torch.backends.cpu import get_cpu_capability

from des.observation import Observation
from learning.mahdrl.paper import PaperSettings
from learning.play_round import play
from learning.seats import seat
from learning.training.loop import Plan
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import shape_of

AGENTS = {
    "slots raw learned": "0e55ffb6de6b",
    "slots centred bids": "afdbe52fb260",
    "serial centred learned": "ceeec3be5eea",
    "serial raw bids": "a336638078f5",
    "shared raw learned": "2ee5df377d81",
    "shared advantage learned": "6db2a78e446f",
    "shared centred learned": "15e85bb642ae",
    "slots advantage learned": "20d3c63119b1",
}
"""Digests of agents that revision 354198ba trained in the same way."""

BRIEF = {"training.backend": "surrogate", "rounds": 6}


def observed(bids: list[float], **changes: object) -> Observation:
    """The observation of a service that is alone with its clients."""
    seen = Observation(
        round=1, rounds=2, service="alpha", services=("alpha",), dqi=np.full(len(bids), 0.5), bids=np.array([bids]),
        budget=20.0, cores=1, accuracy=0.1, target_accuracy=0.9, key=b"",
    )  # fmt: skip
    return replace(seen, **changes)


@pytest.mark.skipif(get_cpu_capability() != "AVX512", reason="they were trained with torch's code for AVX-512")
@pytest.mark.parametrize("name", AGENTS)
def test_readings_make_the_agents_that_they_made(name, tmp_path):
    plan = Plan(episodes=3, epsilon_episodes=1, evaluate_every=3)
    settings = PaperSettings(noise=0.2, bias=2.0)
    train_reading(
        Reading.named(name), plan, tmp_path / "a.safetensors", scenario=load("paper", BRIEF), settings=settings
    )
    tensors = load_file(tmp_path / "a.safetensors")
    digest = hashlib.sha256(b"".join(tensors[key].tobytes() for key in sorted(tensors))).hexdigest()[:12]
    assert digest == AGENTS[name]


def test_every_pick_sees_what_is_left_and_who_has_been_chosen():
    shared = np.arange(9, dtype=np.float32)  # 4 DQIs, 4 bids, and the budget, in units of itself
    slot, states = Slot(observed([6.0, 8.0, 4.0, 9.0]), shared), []

    def values(state):
        states.append(state[0])
        return np.full((1, 4), 0.25), np.array([[1.0, 4.0, 2.0, 3.0]])  # payments 7.5, 10, 5 and 11.25

    fill([slot], values)
    assert slot.offer.clients.tolist() == [1, 2], "the last client is better than the third, but does not fit"
    assert slot.offer.payments.tolist() == [10.0, 5.0]
    assert [pick.left for pick in slot.picks] == [20.0, 10.0]
    np.testing.assert_allclose([state[8] for state in states], [1.0, 0.5, 0.25])
    assert [state[9:].tolist() for state in states] == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]]


def test_clients_that_are_offline_are_not_picked():
    slot = Slot(observed([6.0, 8.0, 4.0], offline=frozenset({1})), np.zeros(7, np.float32))
    fill([slot], lambda _: (np.zeros((1, 3)), np.array([[1.0, 4.0, 2.0]])))
    assert slot.offer.clients.tolist() == [2, 0]


def test_of_those_that_fit_the_best_is_one():
    q, prices, free = tensor([[[1.0, 3.0, 2.0]]]), tensor([[[5.0, 9.0, 5.0]]]), ones(1, 1, 3)
    assert best_client(q, prices, tensor([[9.0]]), free).tolist() == [[[0.0, 1.0, 0.0]]]
    assert best_client(q, prices, tensor([[8.0]]), free).tolist() == [[[0.0, 0.0, 1.0]]]
    assert best_client(q, prices, tensor([[4.0]]), free).tolist() == [[[0.0, 0.0, 0.0]]]


def test_the_reward_of_a_slot_comes_with_its_last_pick():
    scenario = load("paper", BRIEF | {"rounds": 2})
    names = tuple(service.name for service in scenario.services)
    learner = learner_of(Reading("serial", "raw", "learned"), names, shape_of(scenario), 0, PaperSettings())
    market = build_market(scenario, 1, build_federation(scenario, 1, Shelf(), workers=0))
    learner.begin(1)
    picks, rewards = [], []
    while not market.finished:
        observations = market.open_round()
        offers = learner.act(observations, 0.5)
        report = market.close_round(offers)
        learner.observe(observations, offers, report.feedback)
        picks.append(len(offers["mnist"].clients))
        rewards.append(report.feedback["mnist"].reward / shape_of(scenario).reward_bases["mnist"])
    first, total = picks[0], sum(picks)
    stored = {name: values[0, :total] for name, values in learner._replay.fields.items()}
    assert learner._replay.stored[0] == total, "one transition for each pick"
    np.testing.assert_allclose(stored["reward"][[first - 1, total - 1]], rewards, rtol=1e-6)
    assert (np.delete(stored["reward"], [first - 1, total - 1]) == 0.0).all()
    assert stored["final"].tolist() == [0.0] * (total - 1) + [1.0]
    np.testing.assert_array_equal(stored["next_state"][:-1], stored["state"][1:])


@pytest.mark.parametrize("name", ["serial centred learned", "slots raw bids", "shared centred bids"])
def test_the_policy_plays_what_was_learned(name, tmp_path):
    scenario, path = load("paper", BRIEF), tmp_path / "agent.safetensors"
    plan = Plan(episodes=2, epsilon_episodes=1, evaluate_every=2)
    learner = train_reading(Reading.named(name), plan, path, scenario=scenario)
    market = build_market(scenario, 0, build_federation(scenario, 0, Shelf(), workers=0))
    names = [service.name for service in scenario.services]
    options = {service: {"checkpoint": str(path)} for service in names}
    seats = seat(market, dict.fromkeys(names, "algorithm1-reading"), options)
    seen = market.open_round()
    expected = learner.act(seen, 0.0)
    for service in names:
        found = seats[service].reasons(seen[service])
        assert found.offer.clients.tolist() == expected[service].clients.tolist()
        np.testing.assert_allclose(found.offer.payments, expected[service].payments, rtol=1e-4)
    market.close_round({service: seats[service].act(seen[service]) for service in names})
    play(market, seats)
    assert market.finished
