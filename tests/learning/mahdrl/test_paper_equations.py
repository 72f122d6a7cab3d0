"""Eqs. (7) to (12), each against numbers worked out by hand."""

import numpy as np
import pytest
import torch

from fl.arithmetic.streams import stream
from learning.mahdrl.paper import (
    ActorCritic,
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
    assert dict(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True)) == {0: 1.5}
