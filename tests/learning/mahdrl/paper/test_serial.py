"""The other reading of serial selection: what a pick sees, what it is credited with, and what ends a slot."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from fl.errors import InputError
from fl.streams import stream
from learning.mahdrl import checkpoint
from learning.mahdrl.paper.actor_critic import Weights
from learning.mahdrl.paper.serial import Slot, best_client, fill, targets
from learning.mahdrl.paper.serial_learner import SerialLearner
from learning.mahdrl.paper.settings import Settings
from learning.mahdrl.shape import Shape
from learning.play import play
from learning.seats import seat
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load

NAMES = ("s0", "s1", "s2")
SERIAL = Settings(network="slots", selection="serial", centred=False, hidden=(16, 8))


def learner(settings=SERIAL, seed=0):
    return SerialLearner(NAMES, Shape(NAMES, 20, 2, 6, dict.fromkeys(NAMES, 100.0)), seed, settings)


class Linear:
    """One agent, two clients: mu(s) = theta; Q_c(s, a) = omega_c * s + a_c * (c + 1)."""

    def markup(self, actor, states):
        return actor[:, None, :].expand(*states.shape[:2], 2)

    def q(self, critic, states, markup):
        return critic[:, None, :] * states + markup * torch.tensor([1.0, 2.0])


def batch(**fields):
    return {name: torch.tensor(values, dtype=torch.float32)[None] for name, values in fields.items()}


def test_the_target_is_the_best_client_that_fits_in_the_next_step():
    # Q'(s', mu') = [3 * 2 + .5, 1 * 2 + 2 * .25] = [6.5, 2.5]; payments 4 * 1.5 = 6 and 4 * 1.25 = 5.
    weights = Weights(torch.tensor([[0.5, 0.25]]), torch.tensor([[3.0, 1.0]]))
    after = {"next_state": [[2.0]], "next_bids": [[4.0, 4.0]]}

    def target(within=(0.0, float("inf")), budget=6.0, here=(1.0, 1.0), reward=0.0, discount=1.0, final=0.0):
        fields = batch(**after, next_here=[here], budget=[budget], reward=[reward], discount=[discount], final=[final])
        return targets(Linear(), weights, fields, within=within).item()

    assert target() == pytest.approx(6.5)  # within a slot there is neither a reward nor a discount
    assert target(reward=1.0, discount=0.9) == pytest.approx(1.0 + 0.9 * 6.5)  # the last pick of a slot
    assert target(budget=5.9) == pytest.approx(2.5)  # the first is too dear for what is left
    assert target(here=(0.0, 1.0)) == pytest.approx(2.5)  # the first has been chosen
    assert target(budget=4.9) == 0.0  # nobody fits
    assert target(within=(0.0, 5.0)) == pytest.approx(5.0)
    assert target(reward=7.0, final=1.0) == 7.0


def test_of_those_that_fit_the_best_is_one():
    q, prices = torch.tensor([[[1.0, 3.0, 2.0]]]), torch.tensor([[[5.0, 9.0, 5.0]]])
    all_free = torch.ones(1, 1, 3)
    assert best_client(q, prices, torch.tensor([[9.0]]), all_free).tolist() == [[[0.0, 1.0, 0.0]]]
    assert best_client(q, prices, torch.tensor([[8.0]]), all_free).tolist() == [[[0.0, 0.0, 1.0]]]
    assert best_client(q, prices, torch.tensor([[4.0]]), all_free).tolist() == [[[0.0, 0.0, 0.0]]]


def test_every_pick_sees_what_is_left_and_who_has_been_chosen(make_observation):
    seen = make_observation([[6.0, 8.0, 4.0, 9.0]], budget=20.0)
    shared = np.arange(9, dtype=np.float32)  # 4 DQIs, 4 bids, and the budget, in units of itself
    slot, states = Slot(seen, shared), []

    def values(state):
        states.append(state[0])
        return np.full((1, 4), 0.25), np.array([[1.0, 4.0, 2.0, 3.0]])  # payments 7.5, 10, 5 and 11.25

    fill([slot], values)
    assert slot.offer.clients.tolist() == [1, 2], "the last client is better than the third, but does not fit"
    assert slot.offer.payments.tolist() == [10.0, 5.0]
    assert [pick.left for pick in slot.picks] == [20.0, 10.0]
    np.testing.assert_allclose([state[8] for state in states], [1.0, 0.5, 0.25])
    assert [state[9:].tolist() for state in states] == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]]
    assert all((state[:8] == shared[:8]).all() for state in states)
    assert slot.q.tolist() == [1.0, 4.0, 2.0, 3.0]


def test_who_explores_picks_any_client_that_fits(make_observation):
    seen = make_observation([[6.0, 8.0, 4.0, 90.0]], budget=20.0)
    firsts = set()
    for seed in range(50):
        slot = Slot(seen, np.zeros(9, np.float32), 1.0, stream(seed, "test"))
        fill([slot], lambda _: (np.zeros((1, 4)), np.array([[1.0, 4.0, 2.0, 3.0]])))
        firsts.add(int(slot.offer.clients[0]))
    assert firsts == {0, 1, 2}


def test_clients_that_are_offline_are_not_picked(make_observation):
    seen = replace(make_observation([[6.0, 8.0, 4.0]], budget=20.0), offline=frozenset({1}))
    slot = Slot(seen, np.zeros(7, np.float32))
    fill([slot], lambda _: (np.zeros((1, 3)), np.array([[1.0, 4.0, 2.0]])))
    assert slot.offer.clients.tolist() == [2, 0]


def test_the_rewards_of_a_slot_come_with_its_last_pick(make_market):
    agent, market = learner(), make_market(NAMES, rounds=2)
    agent.begin(1)
    picks, rewards = [], []
    while not market.finished:
        observations = market.open_round()
        offers = agent.act(observations, 0.5)
        report = market.close_round(offers)
        agent.observe(observations, offers, report.feedback)
        picks.append(len(offers["s0"].clients))
        rewards.append(report.feedback["s0"].reward / 100.0)
    first, total = picks[0], sum(picks)
    stored = {name: values[0, :total] for name, values in agent._replay.fields.items()}
    assert agent._replay.stored[0] == total, "one transition for each pick"
    np.testing.assert_allclose(stored["reward"][[first - 1, total - 1]], rewards, rtol=1e-6)
    assert (np.delete(stored["reward"], [first - 1, total - 1]) == 0.0).all()
    assert set(np.delete(stored["discount"], [first - 1, total - 1]).tolist()) <= {1.0}
    np.testing.assert_allclose(stored["discount"][first - 1], 0.95)
    assert stored["final"].tolist() == [0.0] * (total - 1) + [1.0]
    np.testing.assert_array_equal(stored["next_state"][:-1], stored["state"][1:])
    assert (stored["chosen"].sum(axis=1) == 1.0).all(), "a_d of eqs. (9) and (10) is a set of one client"
    assert stored["budget"][first - 1] == 20.0, "the next slot starts with the whole budget"


def test_it_learns_and_the_policy_plays_what_was_learned(make_market, tmp_path):
    agent = learner(Settings(network="slots", selection="serial"))
    before = agent.weights.critic.detach().clone()
    for episode in (1, 2):
        market = make_market(NAMES, seed=episode)
        agent.begin(episode)
        while not market.finished:
            observations = market.open_round()
            offers = agent.act(observations, 0.5)
            agent.observe(observations, offers, market.close_round(offers).feedback)
        agent.end()
    assert not torch.equal(before, agent.weights.critic.detach())
    assert all(np.isfinite(values).all() for values in agent.state().values())

    scenario = load("paper", ["training.backend=surrogate", "rounds=3"])
    names = [service.name for service in scenario.services]
    path = tmp_path / "agent.safetensors"
    described = {"policy": "mahdrl-paper", "agents": names, "settings": asdict(agent.settings)}
    checkpoint.write(path, "agent", agent.agent(), described)
    market = build_market(scenario, 0, build_federation(scenario, 0, Shelf(), workers=1))
    seats = seat(market, dict.fromkeys(names, "mahdrl-paper"), {name: {"checkpoint": str(path)} for name in names})
    seen = market.open_round()
    agent.services = tuple(names)
    expected = agent.act(seen, 0.0)
    for name in names:
        reasons = seats[name].reasons(seen[name])
        assert reasons.offer.clients.tolist() == expected[name].clients.tolist()
        np.testing.assert_allclose(reasons.offer.payments, expected[name].payments, rtol=1e-4)
        assert reasons.q.shape == (20,)
    market.close_round({name: seats[name].act(seen[name]) for name in names})
    play(market, seats)
    assert market.finished


@pytest.mark.parametrize(
    "departure", [{"network": "clients"}, {"target": "double"}, {"target": "advantage", "centred": False}]
)
def test_departures_that_the_sub_mdp_has_no_place_for_are_refused(departure):
    with pytest.raises(InputError, match="selection=serial: needs --option network=slots, and target=td"):
        Settings(**{"network": "slots", "selection": "serial"} | departure)


def test_noise_that_fades_shrinks_with_epsilon(make_market):
    fading, steady = (learner(Settings(network="slots", selection="serial", fading=fades)) for fades in (True, False))
    seen = make_market(NAMES).open_round()
    for agent in (fading, steady):
        agent.begin(1)
        agent.act(seen, 0.5)
    np.testing.assert_allclose(fading._xi([0, 1, 2], 0.5), 0.5 * steady._xi([0, 1, 2], 0.5), rtol=1e-6)
