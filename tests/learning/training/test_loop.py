"""The row of the training log, against numbers worked out by hand."""

import numpy as np
import pytest

from des.observation import Offer
from learning.training.loop import Learner, SeatedMarket, play_episode


class Generous(Learner):
    """Learns nothing; offers client 0 a quarter more than its bid, and notes the accuracies."""

    def __init__(self):
        self.accuracies = {}

    def act(self, observations, epsilon):
        return {name: Offer(np.array([0]), np.round(1.25 * o.own_bids[:1], 6)) for name, o in observations.items()}

    def observe(self, observations, offers, feedback):
        for name, came in feedback.items():
            self.accuracies.setdefault(name, []).append(came.accuracy)
        return {"loss": float(len(feedback))}

    def end(self, record=None):
        return {"last": 0.5}


def test_a_row_says_how_an_episode_went(make_market):
    market = make_market(("alpha", "beta"), rounds=4, targets={"alpha": 0.5}, speed=0.5)
    learner = Generous()
    row = play_episode(learner, SeatedMarket(market, ("alpha", "beta"), {}), 7, 0.25, learn=True)
    alpha, beta = learner.accuracies["alpha"], learner.accuracies["beta"]
    assert 1 < len(alpha) < len(beta) == 4
    assert alpha[0] < 0.5 <= alpha[-1]
    held = alpha + alpha[-1:] * (4 - len(alpha))  # who has left keeps its model
    assert (row.episode, row.phase, row.epsilon) == (7, "train", 0.25)
    assert row.auc == pytest.approx((np.mean(held) + np.mean(beta)) / 2)
    assert row.reached == 0.5
    assert row.markup == pytest.approx(0.25)
    rewards = [np.mean([100 ** min(a - 0.5, 0) for a in held]), np.mean([100 ** (a - 0.97) for a in beta])]
    assert row.reward == pytest.approx(np.mean(rewards))
    shared = len(alpha)
    assert row.losses == pytest.approx({"loss": (2 * shared + 4 - shared) / 4, "last": 0.5})


def test_an_evaluation_teaches_nothing(make_market):
    learner = Generous()
    row = play_episode(learner, SeatedMarket(make_market(("alpha",), rounds=3), ("alpha",), {}), 0, 0.0, learn=False)
    assert (row.phase, row.losses, learner.accuracies) == ("evaluate", {}, {})
    assert row.auc > 0.1
