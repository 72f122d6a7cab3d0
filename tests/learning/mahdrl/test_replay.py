"""The ring buffers."""

import numpy as np

from fl.arithmetic.streams import stream
from learning.mahdrl.replay import Replay


def filled(count, capacity=4):
    replay = Replay(2, capacity, {"state": (3,), "reward": ()})
    for number in range(count):
        for agent in range(2):
            replay.add(agent, state=[number] * 3, reward=10 * agent + number)
    return replay


def test_the_oldest_transition_makes_room():
    replay = filled(6)
    assert replay.held.tolist() == [4, 4]
    assert sorted(replay.fields["reward"][1].tolist()) == [12, 13, 14, 15]


def test_only_what_is_held_is_drawn():
    batch = filled(2).sample(stream(0, "test"), 200)
    assert batch["state"].shape == (2, 200, 3)
    assert set(batch["reward"][0].tolist()) == {0.0, 1.0}
    assert set(batch["reward"][1].tolist()) == {10.0, 11.0}


def test_fields_of_a_transition_stay_together():
    batch = filled(4).sample(stream(0, "test"), 50)
    np.testing.assert_array_equal(batch["state"][0, :, 0], batch["reward"][0])


def test_a_short_field_is_padded_with_zeros():
    replay = Replay(1, 1, {"state": (3,)})
    replay.add(0, state=[7, 7, 7])
    replay.add(0, state=[5])
    assert replay.fields["state"][0, 0].tolist() == [5, 0, 0]


def test_state_and_restore():
    replay, other = filled(3), Replay(2, 4, {"state": (3,), "reward": ()})
    other.restore(replay.state())
    mine, others = (one.sample(stream(1, "test"), 9) for one in (replay, other))
    for name, values in mine.items():
        np.testing.assert_array_equal(values, others[name])
