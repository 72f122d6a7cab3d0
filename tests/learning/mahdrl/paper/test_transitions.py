"""What line 11 of Algorithm 1 stores: nothing before it is known what followed."""

import numpy as np

from learning.mahdrl.paper.transitions import CreditedTransitions, Transitions
from learning.mahdrl.replay import Replay

ACCURACIES = {1: (0.5, 0.6), 2: (0.7, 0.6)}


def buffer():
    return Replay(agents=2, capacity=10, shapes={"state": (1,), "reward": (), "next_state": (1,), "final": ()})


def play(transitions, agent, accuracies):
    """Two rounds of one agent, whose states are 1 and 2, and whose rewards are 10 and 20."""
    transitions.begin()
    transitions.followed(agent, next_state=[1.0], final=0.0)  # there is no earlier round that it could follow
    transitions.played(agent, accuracies[0], {"state": [1.0], "reward": 10.0})
    transitions.followed(agent, next_state=[2.0], final=0.0)
    transitions.played(agent, accuracies[1], {"state": [2.0], "reward": 20.0})
    transitions.followed(agent, next_state=[0.0], final=1.0)


def test_a_transition_is_stored_when_the_next_state_is_seen():
    replay = buffer()
    play(Transitions(replay), 1, (0.5, 0.6))
    assert replay.stored.tolist() == [0, 2]
    assert replay.fields["state"][1, :2, 0].tolist() == [1.0, 2.0]
    assert replay.fields["next_state"][1, :2, 0].tolist() == [2.0, 0.0]
    assert replay.fields["reward"][1, :2].tolist() == [10.0, 20.0]
    assert replay.fields["final"][1, :2].tolist() == [0.0, 1.0]


def test_a_round_that_nothing_followed_is_dropped_with_the_episode():
    replay = buffer()
    transitions = Transitions(replay)
    transitions.played(0, 0.5, {"state": [1.0], "reward": 10.0})
    transitions.begin()
    transitions.followed(0, next_state=[5.0], final=0.0)
    assert replay.stored.tolist() == [0, 0]


def test_with_credit_transitions_are_stored_at_the_end_with_their_advantage():
    replay = buffer()
    transitions = CreditedTransitions(replay, rounds=2, horizon=1, scale=1.0)
    for episode in (1, 2):
        play(transitions, 1, ACCURACIES[episode])
        assert replay.stored.tolist() == [0, 0]
        transitions.end()
        if episode == 1:
            assert replay.stored.tolist() == [0, 0], "there is no baseline yet that the first could be compared with"
    assert replay.stored.tolist() == [0, 2]
    # y = -log(1 - accuracy): from .5 to .7 in the first round, no difference in the second.
    np.testing.assert_allclose(replay.fields["reward"][1, :2], [np.log(0.5 / 0.3), 0.0], atol=1e-6)
    assert replay.fields["final"][1, :2].tolist() == [1.0, 1.0]


def test_the_baseline_survives_an_interruption():
    whole, resumed = (CreditedTransitions(buffer(), rounds=2, horizon=1, scale=1.0) for _ in range(2))
    play(whole, 1, ACCURACIES[1])
    whole.end()
    resumed.restore({name: np.array(values) for name, values in whole.state().items()})
    for transitions in (whole, resumed):
        play(transitions, 1, ACCURACIES[2])
        transitions.end()
    for name, values in whole.state().items():
        np.testing.assert_array_equal(values, resumed.state()[name])
