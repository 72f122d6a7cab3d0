"""Earlier selves: kept now and then, and played as they were."""

import numpy as np
import pytest

from fl.streams import stream
from learning.mahdrl import selves
from learning.mahdrl.brain import Brain
from learning.mahdrl.selves import Selves
from learning.policy import PolicyContext

CONTEXT = PolicyContext("mnist", 3, 20, 2, 80, 20.0, 0.97, 60.0)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(selves, "EVERY", 2)


def test_at_first_there_are_none():
    kept, brain = Selves(0), Brain.initial(stream(1, "test"), 1)
    kept.keep(1, brain)
    assert kept.player(CONTEXT, 2, brain) is None


def test_they_play_as_the_agent_did_then(make_observation):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    kept, brain = Selves(0), Brain.initial(stream(1, "test"), 1)
    then = brain.decide(seen)
    kept.keep(2, brain)
    brain.quality[...] *= -1.0  # it learns
    assert list(brain.decide(seen).clients) != list(then.clients)
    offer = kept.player(CONTEXT, 3, brain).act(seen)
    np.testing.assert_array_equal(offer.clients, then.clients)
    np.testing.assert_array_equal(offer.payments, then.payments)


def test_all_of_them_come_up_and_resumed_the_same_ones_do():
    kept, brain = Selves(0), Brain.initial(stream(1, "test"), 1)
    for episode in range(1, 7):
        brain.win[...] = episode
        kept.keep(episode, brain)
    again = Selves(0)
    again.restore(kept.state())
    drawn = [[one.player(CONTEXT, episode, brain)._brain.win[0, 0] for episode in range(40)] for one in (kept, again)]
    assert set(drawn[0]) == {2.0, 4.0, 6.0}
    assert drawn[0] == drawn[1]
