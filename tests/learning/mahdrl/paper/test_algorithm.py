"""Eqs. (7) to (12), each against numbers worked out by hand."""

import numpy as np
import pytest
import torch

from fl.streams import stream
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
from learning.mahdrl.shape import Shape


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


def test_what_follows_is_worth_no_more_than_it_can_be():
    after = batch(
        next_state=[[2.0]], next_bids=[[4.0, 4.0]], next_here=[[1.0, 1.0]], reward=[1.0], final=[0.0], budget=[4.0]
    )
    assert targets(Bids(), Weights(THETA, OMEGA), after, 0.9, within=(0.0, 5.0)).item() == pytest.approx(
        1.0 + 0.9 * 5.0
    )
    below = Weights(THETA, -OMEGA)
    assert targets(Bids(), below, after, 0.9, within=(0.0, 5.0)).item() == pytest.approx(1.0)
    assert targets(Bids(), below, after, 0.9, within=(-1.5, 5.0)).item() == pytest.approx(1.0 - 0.9 * 1.5)


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


def test_double_q_values_with_one_critic_what_the_other_chose():
    # The target critic alone would take the first (Q' = [6, 2], one fits); the chooser prefers the second.
    after = batch(
        next_state=[[2.0]], next_bids=[[4.0, 4.0]], next_here=[[1.0, 1.0]], reward=[1.0], final=[0.0], budget=[4.0]
    )
    arguments = (Bids(), Weights(THETA, OMEGA), after, 0.9)
    assert targets(*arguments).item() == pytest.approx(1.0 + 0.9 * 6.0)
    chooser = torch.tensor([[1.0, 3.0]])
    assert targets(*arguments, chooser=chooser).item() == pytest.approx(1.0 + 0.9 * 2.0)


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


def test_the_state_is_dqi_all_bids_and_the_budget(make_observation):
    networks = Networks("slots", "actor", (120, 60), services=2, clients=3, bias=2.0)
    seen = make_observation([[2.0, 4.0, 6.0], [1.0, 1.0, 1.0]], dqi=[0.1, 0.2, 0.3], budget=20.0)
    expected = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.05, 0.05, 0.05, 1.0]
    np.testing.assert_allclose(networks.encode(seen), expected, rtol=1e-6)
    assert networks.state == len(expected)


def test_payments_lie_between_the_bid_and_twice_the_bid():
    networks = Networks("slots", "actor", (120, 60), services=3, clients=20, bias=2.0)
    weights = networks.initial(stream(0, "test"), 3)
    markup = networks.markup(100 * weights.actor, torch.randn(3, 50, networks.state))
    assert markup.min() >= 0
    assert markup.max() <= 1


def test_without_learned_payments_every_client_is_paid_its_bid():
    networks = Networks("slots", "bid", (120, 60), services=3, clients=20, bias=2.0)
    weights = networks.initial(stream(0, "test"), 3)
    assert networks.markup(weights.actor, torch.randn(3, 50, networks.state)).abs().max() == 0


def test_in_mp_dqn_a_clients_q_depends_on_no_other_clients_payment():
    """P-DQN's critic gives each client the gradient of all payments; MP-DQN's, with the same weights, of its own."""
    slots, passes = (Networks(kind, "actor", (12, 6), services=2, clients=4, bias=2.0) for kind in ("slots", "passes"))
    critic, states = slots.initial(stream(0, "test"), 1).critic, torch.rand(1, 5, slots.state)
    markup = torch.rand(1, 5, 4, requires_grad=True)
    for networks, others in ((slots, True), (passes, False)):
        own = torch.autograd.grad(networks.q(critic, states, markup)[..., 1].sum(), markup)[0].abs().sum((0, 1))
        assert own[1] > 0
        assert bool((own[[0, 2, 3]] > 0).any()) is others
    alone = torch.zeros_like(markup)
    alone[..., 1] = markup[..., 1]
    torch.testing.assert_close(passes.q(critic, states, markup)[..., 1], slots.q(critic, states, alone)[..., 1])
    played = passes.q(*(values.detach().numpy() for values in (critic, states, markup)))
    np.testing.assert_allclose(played, passes.q(critic, states, markup).detach(), rtol=1e-5, atol=1e-6)


def test_the_last_reward_holds_what_an_exit_leaves_to_come(make_market):
    names = ("s0", "s1", "s2")
    learner = Learner(names, shape(), 0, Settings(centred=False))
    market = make_market(names, rounds=6, target=0.11, speed=0.5)  # met by all in the first round
    learner.begin(1)
    observations = market.open_round()
    offers = learner.act(observations, 1.0)
    report = market.close_round(offers)
    learner.observe(observations, offers, report.feedback)
    assert market.finished
    each = 100.0 ** (0.11 - 1.0)  # r / Omega in this and the five rounds to come: the reward at the target
    np.testing.assert_allclose(learner._replay.fields["reward"][:, 0], each * sum(0.95**k for k in range(6)), rtol=1e-5)
    np.testing.assert_allclose(learner._replay.fields["final"][:, 0], 1.0)


def test_what_is_stored_is_the_whole_continuous_action(make_market):
    names = ("s0", "s1", "s2")
    learner = Learner(names, shape(), 0, Settings(centred=False))
    market = make_market(names, rounds=2)
    learner.begin(1)
    while not market.finished:
        observations = market.open_round()
        offers = learner.act(observations, 0.5)
        learner.observe(observations, offers, market.close_round(offers).feedback)
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


def test_without_learned_payments_none_are_explored(make_market):
    names = ("s0", "s1", "s2")
    learner = Learner(names, shape(), 0, Settings(payments="bid"))
    learner.begin(1)
    observations = make_market(names).open_round()
    for name, offer in learner.act(observations, 1.0).items():
        assert len(offer.clients) > 0
        np.testing.assert_allclose(offer.payments, observations[name].own_bids[offer.clients])


@pytest.mark.parametrize("network", ["slots", "passes", "clients"])
@pytest.mark.parametrize("target", ["td", "double", "advantage"])
def test_it_plays_and_learns_through_episodes(make_market, network, target):
    names = ("s0", "s1", "s2")
    settings = Settings(network=network, target=target, centred=target != "advantage", hidden=(16, 8))
    learner = Learner(names, shape(), 0, settings)
    before = learner.weights.critic.detach().clone()
    for episode in (1, 2, 3):
        market = make_market(names, seed=episode)
        learner.begin(episode)
        while not market.finished:
            observations = market.open_round()
            offers = learner.act(observations, 0.5)
            learner.observe(observations, offers, market.close_round(offers).feedback)
        learner.end()
    assert not torch.equal(before, learner.weights.critic.detach())
    assert all(np.isfinite(values).all() for values in learner.state().values())
