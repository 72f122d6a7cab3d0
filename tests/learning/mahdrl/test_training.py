"""The row of the training log and the preferences of an evaluation, against numbers worked out by hand."""

import numpy as np
import pytest

from des.observation import Feedback, Offer, Status
from learning.mahdrl.training import Learner, Preferences, SeatedMarket, fifths, play_episode


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

    def end(self, lived=None):
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


def came(*served):
    n = len(served)
    return Feedback(1, 0.2, 1.0, np.array(served, bool), np.zeros(n, bool), np.zeros(n), np.zeros(n), Status.TRAINING)


def test_clients_are_ordered_and_cut_into_fifths_without_those_that_are_offline():
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    assert fifths(values, np.array([1, 1, 1, 1, 1, 0], bool)).tolist() == [4, 0, 3, 1, 2, 0]
    assert fifths(np.zeros(6), np.ones(6, bool)).tolist() == [0, 0, 1, 2, 3, 4]  # of equal ones the first come first
    assert fifths(values, np.zeros(6, bool)).tolist() == [0] * 6


def test_preferences_are_shares_of_all_offers(make_observation):
    found = Preferences()
    seen = make_observation([[1.0, 2.0, 3.0, 4.0, 5.0]], [0.5, 0.4, 0.3, 0.2, 0.1])
    found.add(seen, Offer(np.array([4, 3]), np.array([5.5, 4.0])), came(True, False))
    found.add(seen, Offer(np.array([4]), np.array([5.0])), came(True))
    found.add(seen, Offer.none(), came())
    [row] = found.rows(25)
    assert (row["episode"], row["service"], row["offers"]) == (25, "s0", 1.0)
    assert row["served"] == pytest.approx(2 / 3)
    assert row["markup"] == pytest.approx(14.5 / 14 - 1)
    assert [row[f"bid_{part}"] for part in range(1, 6)] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3])
    assert [row[f"dqi_{part}"] for part in range(1, 6)] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])


def test_without_offers_there_are_no_shares(make_observation):
    found = Preferences()
    found.add(make_observation([[1.0]], [0.5]), Offer.none(), came())
    [row] = found.rows(1)
    assert row["offers"] == 0.0
    assert {row["served"], row["markup"], row["bid_1"], row["dqi_5"]} == {""}
