"""Eqs. (7) to (12), each against numbers worked out by hand."""

import numpy as np
import pytest
import torch

from fl.arithmetic.streams import stream
from learning.mahdrl.paper.actor_critic import Networks, Weights
from learning.mahdrl.paper.algorithm import Learner
from learning.mahdrl.paper.equations import (
    actor_loss,
    critic_loss,
    greedy_set,
    mean_q,
    serial_order,
    soft_update,
    targets,
)
from learning.mahdrl.paper.settings import Settings
from learning.mahdrl.training import Shape


class Linear:
    """One agent, two clients: mu(s) = theta; Q_c(s, a) = omega_c * s + a_c * (c + 1)."""

    def markup(self, actor, states):
        return actor[:, None, :].expand(*states.shape[:2], 2)

    def q(self, critic, states, markup):
        return critic[:, None, :] * states + markup * torch.tensor([1.0, 2.0])


class Bids(Linear):
    """The same, but each client is paid its bid: mu(s) = 0."""

    def markup(self, actor, states):
        return torch.zeros(*states.shape[:2], 2)


THETA, OMEGA = torch.tensor([[0.5, 0.25]]), torch.tensor([[3.0, 1.0]])


def batch(**fields):
    return {name: torch.tensor(values, dtype=torch.float32)[None] for name, values in fields.items()}


def test_the_target_bootstraps_from_the_greedy_set_of_the_target_networks():
    # Q'(s', mu') = [3 * 2 + .5, 1 * 2 + 2 * .25] = [6.5, 2.5]; payments 4 * 1.5 = 6 and 4 * 1.25 = 5.
    after = {
        "next_state": [[2.0]],
        "next_bids": [[4.0, 4.0]],
        "next_here": [[1.0, 1.0]],
        "reward": [1.0],
        "final": [0.0],
    }
    y = targets(Linear(), Weights(THETA, OMEGA), batch(budget=[11.0], **after), 0.9)
    assert y.item() == pytest.approx(1.0 + 0.9 * (6.5 + 2.5) / 2)  # both fit
    y = targets(Linear(), Weights(THETA, OMEGA), batch(budget=[10.9], **after), 0.9)
    assert y.item() == pytest.approx(1.0 + 0.9 * 6.5)  # the second does not
    # Without learned payments a_c' = 0: Q' = [6, 2], and bids of 4 each fit into 8.
    y = targets(Bids(), Weights(THETA, OMEGA), batch(budget=[8.0], **after), 0.9)
    assert y.item() == pytest.approx(1.0 + 0.9 * 4.0)


def test_nothing_follows_the_last_round():
    last = batch(
        next_state=[[2.0]], next_bids=[[4.0, 4.0]], next_here=[[1.0, 1.0]], reward=[7.0], final=[1.0], budget=[20.0]
    )
    assert targets(Linear(), Weights(THETA, OMEGA), last, 0.9).item() == 7.0


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


def test_the_greedy_set_stops_at_the_first_that_does_not_fit():
    q = torch.tensor([[[3.0, 2.0, 1.0]]])
    prices = torch.tensor([[[5.0, 9.0, 2.0]]])
    all_here = torch.ones(1, 1, 3)
    assert greedy_set(q, prices, torch.tensor([[8.0]]), all_here).tolist() == [[[1.0, 0.0, 0.0]]]
    assert greedy_set(q, prices, torch.tensor([[16.0]]), all_here).tolist() == [[[1.0, 1.0, 1.0]]]


def test_the_greedy_set_passes_over_clients_that_are_offline():
    q = torch.tensor([[[3.0, 2.0, 1.0]]])
    prices = torch.tensor([[[5.0, 9.0, 2.0]]])
    here = torch.tensor([[[1.0, 0.0, 1.0]]])
    assert greedy_set(q, prices, torch.tensor([[8.0]]), here).tolist() == [[[1.0, 0.0, 1.0]]]


def test_q_of_nobody_is_zero():
    assert mean_q(torch.ones(1, 1, 3), torch.zeros(1, 1, 3)).item() == 0.0


def test_serial_selection_is_greedy_or_random():
    q = np.array([0.1, 0.9, 0.5, 0.7])
    assert serial_order(q, 0.0, None) == [1, 3, 2, 0]
    assert serial_order(q, 0.0, stream(0, "test")) == [1, 3, 2, 0]
    firsts = {serial_order(q, 1.0, stream(seed, "test"))[0] for seed in range(50)}
    assert firsts == {0, 1, 2, 3}


def shape(clients=20, services=3):
    names = tuple(f"s{m}" for m in range(services))
    return Shape(names, clients, 2, 6, dict.fromkeys(names, 100.0))


def test_payments_lie_between_the_bid_and_twice_the_bid():
    networks = Networks((120, 60), bias=2.0)
    weights = networks.initial(stream(0, "test"), 3)
    markup = networks.markup(100 * weights.actor, torch.randn(3, 50, *networks.state(20)))
    assert markup.min() >= 0
    assert markup.max() <= 1


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
    learner, state = Learner(("s0",), shape(services=1), 0, Settings()), []
    for episode in (1, 2):
        for n, (seen, _) in enumerate(explore(learner, make_market(["s0"], seed=episode), episode), 1):
            state.append(learner.networks.encode(seen["s0"]))
            last = n == 6
            assert learner._replay.stored[0] == (0 if episode == 1 else n if last else n - 1)
    stored = {name: values[0, :6] for name, values in learner._replay.fields.items()}
    np.testing.assert_array_equal(stored["state"], state[6:])
    np.testing.assert_array_equal(stored["next_state"], [*state[7:], 0 * state[0]])
    assert stored["final"].tolist() == [0.0] * 5 + [1.0]


def test_a_round_that_nothing_followed_is_dropped_with_the_episode(make_market):
    learner = Learner(("s0",), shape(services=1), 0, Settings())
    list(explore(learner, make_market(["s0"]), 1))
    next(explore(learner, make_market(["s0"]), 2))
    assert learner._waiting
    learner.begin(3)
    assert not learner._waiting


def test_what_is_stored_is_the_whole_continuous_action(make_market):
    names = ("s0", "s1", "s2")
    learner = Learner(names, shape(), 0, Settings())
    list(explore(learner, make_market(names, rounds=2), 1))
    for observations, offers in explore(learner, make_market(names, rounds=2), 2):
        paid = offers["s0"].payments / observations["s0"].own_bids[offers["s0"].clients] - 1.0
        np.testing.assert_allclose(learner._continuous["s0"][offers["s0"].clients], paid, atol=1e-5)
    stored, chosen = learner._replay.fields["markup"][0, :2], learner._replay.fields["chosen"][0, :2]
    assert (stored[chosen == 0] > 0).any(), "also of clients that were not chosen"
    assert set(np.unique(chosen)) == {0.0, 1.0}, "Q of a set is a mean: who is chosen counts once"


def test_payments_are_explored_by_an_ornstein_uhlenbeck_process(make_market):
    names = ("s0", "s1", "s2")
    learner, market = Learner(names, shape(), 7, Settings(noise=0.5, reversion=0.25)), make_market(names, rounds=3)
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
    assert (learner._noise == 0.0).all(), "each episode starts anew"


def test_it_plays_and_learns_through_episodes(make_market):
    names = ("s0", "s1", "s2")
    learner = Learner(names, shape(), 0, Settings(hidden=(16, 8)))
    before = learner.weights.copy()
    for episode in (1, 2, 3):
        list(explore(learner, make_market(names, seed=episode), episode))
    for then, now in zip(before.tensors().values(), learner.weights.tensors().values(), strict=True):
        assert not np.array_equal(then, now)
    assert all(np.isfinite(values).all() for values in learner.state().values())
