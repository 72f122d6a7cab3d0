"""Eqs. (7) to (12) by hand; what the lines of Algorithm 1 store, explore and learn; and the agent of flmarket."""

import json
from dataclasses import asdict, replace
from shutil import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic.streams import stream
from learning.mahdrl.paper import (
    SCALE,
    ActorCritic,
    PaperLearner,
    PaperSettings,
    Rewards,
    Weights,
    actor_loss,
    critic_loss,
    greedy_set,
    mean_q,
    serial_order,
    serial_selection,
    soft_update,
    targets,
)
from learning.play_round import play
from learning.policy import POLICIES
from learning.seats import seat
from learning.training.agent_files import CheckpointError, shipped
from learning.training.loop import MarketShape
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from support.feedback import by_client


class Linear:
    """One agent, two clients: mu(s) = theta; Q_c(s, a) = omega_c * s + a_c * (c + 1)."""

    def markup(self, actor, states):
        return actor[:, None, :].expand(*states.shape[:2], 2)

    def q(self, critic, states, markup):
        return critic[:, None, :] * states + markup * torch.tensor([1.0, 2.0])


THETA, OMEGA = torch.tensor([[0.5, 0.25]]), torch.tensor([[3.0, 1.0]])


def batch(**fields):
    return {name: torch.tensor(values, dtype=torch.float32)[None] for name, values in fields.items()}


@pytest.mark.parametrize(
    ("budget", "final", "expected"),
    [
        (11.0, 0.0, 1.0 + 0.9 * (6.5 + 2.5) / 2),  # both fit
        (10.9, 0.0, 1.0 + 0.9 * 6.5),  # the second does not
        (11.0, 1.0, 1.0),  # nothing follows the last round
    ],
)
def test_the_target_bootstraps_from_the_greedy_set_of_the_target_networks(budget, final, expected):
    # Q'(s', mu') = [3 * 2 + .5, 1 * 2 + 2 * .25] = [6.5, 2.5]; payments 4 * 1.5 = 6 and 4 * 1.25 = 5.
    after = {"next_state": [[2.0]], "next_bids": [[4.0, 4.0]], "next_here": [[1.0, 1.0]]}
    seen = batch(budget=[budget], final=[final], reward=[1.0], **after)
    assert targets(Linear(), Weights(THETA, OMEGA), seen, 0.9).item() == pytest.approx(expected)


def test_the_critics_loss_is_the_mean_squared_error_of_the_sets():
    # Q of the sets: {0, 1}: (3 * 1 + .1 + 1 * 1 + .4) / 2 = 2.25; {1}: 1 * 2 + 0 = 2.
    seen = batch(state=[[1.0], [2.0]], markup=[[0.1, 0.2], [0.0, 0.0]], chosen=[[1.0, 1.0], [0.0, 1.0]])
    loss = critic_loss(Linear(), OMEGA, seen, torch.tensor([[3.25, 1.0]]))
    assert loss.item() == pytest.approx((1.0**2 + 1.0**2) / 2)


def test_the_actors_gradient_runs_through_the_payments_of_the_chosen():
    theta, omega = THETA.clone().requires_grad_(), OMEGA.clone().requires_grad_()
    seen = batch(state=[[1.0], [1.0]], chosen=[[1.0, 0.0], [1.0, 1.0]])
    loss = actor_loss(Linear(), Weights(theta, omega), seen)
    # Q: {0}: 3 + .5; {0, 1}: (3.5 + 1 + .5) / 2.
    assert loss.item() == pytest.approx(-(3.5 + 2.5) / 2)
    gradient, none = torch.autograd.grad(loss, (theta, omega), allow_unused=True)
    np.testing.assert_allclose(gradient, [[-(1.0 + 0.5) / 2, -(2.0 / 2) / 2]])
    assert none is None  # the critic does not learn from it


def test_soft_updates():
    target = Weights(torch.tensor([[1.0]]), torch.tensor([[2.0]]))
    soft_update(target, Weights(torch.tensor([[3.0]]), torch.tensor([[0.0]])), 0.01)
    np.testing.assert_allclose(target.actor, [[1.02]])
    np.testing.assert_allclose(target.critic, [[1.98]])


@pytest.mark.parametrize(
    ("budget", "here", "chosen"),
    [
        (8.0, [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]),  # it stops at the first that does not fit,
        (16.0, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        (8.0, [1.0, 0.0, 1.0], [1.0, 0.0, 1.0]),  # and passes over those that are offline
    ],
)
def test_the_greedy_set_fills_the_budget_by_falling_q(budget, here, chosen):
    q, prices = torch.tensor([[[3.0, 2.0, 1.0]]]), torch.tensor([[[5.0, 9.0, 2.0]]])
    assert greedy_set(q, prices, torch.tensor([[budget]]), torch.tensor([[here]])).tolist() == [[chosen]]


def test_q_of_the_empty_set_is_zero():
    assert mean_q(torch.ones(1, 1, 3), torch.zeros(1, 1, 3)).item() == 0.0


def test_serial_selection_is_greedy_or_random():
    q = np.array([0.1, 0.9, 0.5, 0.7])
    assert serial_order(q, 0.0, None) == serial_order(q, 0.0, stream(0, "test")) == [1, 3, 2, 0]
    assert {serial_order(q, 1.0, stream(seed, "test"))[0] for seed in range(50)} == {0, 1, 2, 3}


def test_payments_lie_between_the_bid_and_twice_the_bid():
    networks = ActorCritic((120, 60), bias=2.0)
    weights = networks.initial(stream(0, "test"), 3)
    markup = networks.markup(100 * weights.actor, torch.randn(3, 50, *networks.state(20)))
    assert 0 <= markup.min() <= markup.max() <= 1


def test_serial_selection_stops_at_the_first_client_that_does_not_fit(observe):
    """Eq. (7): by falling Q, each at its bid and its markup on it; no client behind the dear one is asked."""
    seen = observe([1.0, 4.0, 2.0], [1.0, 1.0, 1.0], budget=5.0)
    offer = serial_selection(seen, np.array([0.5, 0.0, 0.0]), np.array([3.0, 2.0, 1.0]))
    assert by_client(offer) == {0: 1.5}


NAMES = ("s0", "s1", "s2")


def learner_of(names=NAMES, seed=0, **settings):
    return PaperLearner(
        names, MarketShape(names, 20, 2, 6, dict.fromkeys(names, 100.0)), seed, PaperSettings(**settings)
    )


def explore(learner, market, episode, epsilon=0.5):
    """Play an episode; yield what is seen in each round, and the offers."""
    learner.begin(episode)
    while not market.finished:
        observations = market.open_round()
        offers = learner.act(observations, epsilon)
        learner.observe(observations, offers, market.close_round(offers).feedback)
        yield observations, offers
    learner.end()


def test_a_transition_is_stored_when_the_next_state_is_seen(make_market):
    """Of the first episode none is, as nothing is known yet that its rewards could be compared with."""
    learner, state = learner_of(("s0",)), []
    for episode in (1, 2):
        for n, (seen, _) in enumerate(explore(learner, make_market(["s0"], seed=episode), episode), 1):
            state.append(learner.networks.encode(seen["s0"]))
            last = n == 6
            assert learner._replay.stored[0] == (0 if episode == 1 else n if last else n - 1)
    stored = {name: values[0, :6] for name, values in learner._replay.fields.items()}
    np.testing.assert_array_equal(stored["state"], state[6:])
    np.testing.assert_array_equal(stored["next_state"], [*state[7:], 0 * state[0]])
    assert stored["final"].tolist() == [0.0] * 5 + [1.0]


def test_what_follows_a_transition_is_discounted_by_its_length(make_market):
    """gamma^length is gamma (1 - final): a quarter of a slot makes little of what follows wait."""
    learner, lengths = learner_of(("s0",)), [1.0, 0.25, 0.5, 1.0, 0.75, 1.0]
    for episode in (1, 2):
        market = make_market(["s0"], seed=episode)
        learner.begin(episode)
        while not market.finished:
            observations = market.open_round()
            offers = learner.act(observations, 0.5)
            feedback = market.close_round(offers).feedback["s0"]
            learner.observe(observations, offers, {"s0": replace(feedback, length=lengths[market.round - 1])})
        learner.end()
    gamma, final = learner.settings.discount, learner._replay.fields["final"][0, :6]
    np.testing.assert_allclose(gamma * (1 - final[:5]), [gamma**length for length in lengths[:5]], rtol=1e-6)
    assert final[[0, 3, 5]].tolist() == [0.0, 0.0, 1.0]


def test_the_reward_of_a_part_of_a_slot_is_as_much_less():
    rewards = Rewards(1, 2, 0.9)
    for _ in range(2):
        rewards.begin()
        stored = rewards.stored(0, 0.5, 0, 0.25), rewards.stored(0, 0.5, 0)
        rewards.end()
        rewards._usual.mean[...] = 0.0
    assert stored == pytest.approx([SCALE * 0.5 * (1 - 0.9**0.25) / 0.1, SCALE * 0.5])


def test_a_round_that_nothing_followed_is_dropped_with_the_episode(make_market):
    learner = learner_of(("s0",))
    list(explore(learner, make_market(["s0"]), 1))
    next(explore(learner, make_market(["s0"]), 2))
    assert learner._waiting
    learner.begin(3)
    assert not learner._waiting


def test_what_is_stored_is_the_whole_continuous_action(make_market):
    learner = learner_of()
    list(explore(learner, make_market(NAMES, rounds=2), 1))
    for observations, offers in explore(learner, make_market(NAMES, rounds=2), 2):
        paid = offers["s0"].payments / observations["s0"].own_bids[offers["s0"].clients] - 1.0
        np.testing.assert_allclose(learner._continuous["s0"][offers["s0"].clients], paid, atol=1e-5)
    stored, chosen = learner._replay.fields["markup"][0, :2], learner._replay.fields["chosen"][0, :2]
    assert (stored[chosen == 0] > 0).any(), "also of clients that were not chosen"
    assert set(np.unique(chosen)) == {0.0, 1.0}, "Q of a set is a mean: who is chosen counts once"


def test_payments_are_explored_by_an_ornstein_uhlenbeck_process(make_market):
    learner, market = learner_of(seed=7, noise=0.5, reversion=0.25), make_market(NAMES, rounds=3)
    learner.begin(1)
    xi = 0.0
    for n in (1, 2, 3):
        observations = market.open_round()
        learner.act(observations, 0.0)
        plain = learner._continuous["s1"]
        offers = learner.act(observations, 0.5)
        xi = xi + 0.5 * stream(7, "noise", 1, n).normal(size=learner._noise.shape) - 0.25 * xi
        np.testing.assert_allclose(learner._continuous["s1"], np.clip(plain + xi[1], 0.0, 1.0), atol=1e-6)
        market.close_round(offers)
    learner.begin(2)
    assert (learner._noise == 0.0).all(), "each episode starts again"


def test_it_plays_and_learns_through_episodes(make_market):
    learner = learner_of(hidden=(16, 8))
    before = learner.weights.copy()
    for episode in (1, 2, 3):
        list(explore(learner, make_market(NAMES, seed=episode), episode))
    for then, now in zip(before.tensors().values(), learner.weights.tensors().values(), strict=True):
        assert not np.array_equal(then, now)
    assert all(np.isfinite(values).all() for values in learner.state().values())


ROUNDS, GAMMA = 6, 0.9


def returned(rewards, earned):
    """Play an episode; return the discounted sum of what is stored. Fewer than all rounds: the service has left."""
    rewards.begin()
    left = [0] * (len(earned) - 1) + [ROUNDS - len(earned)]
    stored = [rewards.stored(0, reward, rest) for reward, rest in zip(earned, left, strict=True)]
    return None if None in stored else sum(GAMMA**n * value for n, value in enumerate(stored))


def held(earned):
    """The return of the market's whole length, where a service that leaves keeps its last reward."""
    return sum(GAMMA**n * (earned[n] if n < len(earned) else earned[-1]) for n in range(ROUNDS))


def centred_after(*episodes):
    rewards = Rewards(1, ROUNDS, GAMMA)
    for earned in episodes:
        returned(rewards, earned)
        rewards.end()
    return rewards


EPISODE = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=ROUNDS)


@given(EPISODE, EPISODE, st.lists(EPISODE, min_size=1, max_size=4))
def test_centring_takes_the_same_from_every_return(one, another, earlier):
    """So the order of two policies stays as it is, also where one of them leaves early."""
    rewards = centred_after(*earlier)
    difference = returned(rewards, one) - returned(rewards, another)
    assert difference == pytest.approx(SCALE * (held(one) - held(another)), abs=1e-9)


def test_an_exit_is_credited_with_what_the_remaining_rounds_are_above_the_usual():
    rewards = centred_after([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    rewards.begin()
    assert rewards.stored(0, 0.15, 0) == pytest.approx(SCALE * 0.05)
    rest = sum(GAMMA**n * (0.9 - usual) for n, usual in enumerate([0.2, 0.3, 0.4, 0.5, 0.6]))
    assert rewards.stored(0, 0.9, ROUNDS - 2) == pytest.approx(SCALE * rest)


def test_a_service_that_has_left_counts_in_later_rounds_with_its_constant_reward():
    rewards = centred_after([0.2] * ROUNDS, [0.2, 0.8])
    rewards.begin()
    assert [rewards.stored(0, 0.5, 0) for _ in range(ROUNDS)] == pytest.approx(SCALE * np.array([0.3, *[0.0] * 5]))


def test_the_first_episode_has_nothing_to_be_compared_with():
    assert returned(Rewards(1, ROUNDS, GAMMA), [0.5] * ROUNDS) is None


def test_each_agent_has_its_own_usual_rewards():
    rewards = Rewards(2, ROUNDS, GAMMA)
    for agent, earned in enumerate((0.2, 0.7)):
        for _ in range(ROUNDS):
            rewards.stored(agent, earned, 0)
    rewards.end()
    rewards.begin()
    assert [rewards.stored(agent, 0.7, 0) for agent in (0, 1)] == pytest.approx([SCALE * 0.5, 0.0])


def paper(*overrides):
    scenario = load("paper", ["training.backend=surrogate", "rounds=3", *overrides])
    return build_market(scenario, 0, build_federation(scenario, 0, Shelf(), workers=1))


@pytest.mark.parametrize("clients", [20, 21])
def test_the_shipped_agent_plays_the_papers_market_and_any_number_of_clients(clients):
    market, reports = paper(f"clients.count={clients}"), []
    play(market, seat(market, dict.fromkeys([spec.name for spec in market.services], "mahdrl-paper")), [reports.append])
    assert len(reports) == 3
    assert all(len(came.served) > 0 for report in reports for came in report.feedback.values())


def test_the_shipped_agent_was_trained_with_the_defaults():
    described = json.loads(shipped("mahdrl-paper").with_suffix(".json").read_text())
    assert json.loads(json.dumps(asdict(PaperSettings()))).items() <= described["settings"].items()
    assert (described["backend"], described["plan"]["episodes"], described["plan"]["seed"]) == ("surrogate", 200, 0)


def test_it_plays_no_service_that_it_was_not_trained_for(make_context):
    with pytest.raises(CheckpointError, match="has agents for mnist, fashion-mnist, emnist, but none for service 's0'"):
        POLICIES.create("mahdrl-paper", make_context())


def test_settings_that_cannot_be_are_refused(tmp_path, make_context):
    path = tmp_path / "agent.safetensors"
    for file in (shipped("mahdrl-paper"), shipped("mahdrl-paper").with_suffix(".json")):
        copy(file, tmp_path / f"agent{file.suffix}")
    described = path.with_suffix(".json")
    wrong = {"settings": {"hidden": "many"}, "agents": ["s0"]}
    described.write_text(json.dumps(json.loads(described.read_text()) | wrong))
    with pytest.raises(CheckpointError, match=r"agent\.json: settings\.hidden: "):
        POLICIES.create("mahdrl-paper", make_context(), checkpoint=str(path))


def test_equal_observations_get_equal_offers():
    market = paper()
    policy = seat(market, {"mnist": "mahdrl-paper"})["mnist"]
    seen = market.open_round()["mnist"]
    first, second = policy.act(seen), policy.act(seen)
    np.testing.assert_array_equal(first.clients, second.clients)
    np.testing.assert_array_equal(first.payments, second.payments)
