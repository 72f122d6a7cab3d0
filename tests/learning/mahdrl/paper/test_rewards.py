"""What line 11 stores as the reward: what r / Omega is above the usual one in the same round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.mahdrl.paper.rewards import SCALE, Rewards

ROUNDS, GAMMA = 6, 0.9


def returned(rewards, earned, agent=0):
    """Play an episode; return the discounted sum of what is stored. Fewer than all rounds: the service has left."""
    rewards.begin()
    stored = []
    for n, reward in enumerate(earned, 1):
        last = n == len(earned)
        stored.append(rewards.stored(agent, reward, ROUNDS - n if last else 0))
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
    rest = (0.9 - 0.2) + GAMMA * (0.9 - 0.3) + GAMMA**2 * (0.9 - 0.4) + GAMMA**3 * (0.9 - 0.5) + GAMMA**4 * (0.9 - 0.6)
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


def test_a_checkpoint_holds_the_usual_rewards():
    rewards = centred_after([0.1] * ROUNDS, [0.4] * ROUNDS)
    resumed = Rewards(1, ROUNDS, GAMMA)
    resumed.restore(rewards.state())
    assert returned(resumed, [0.5] * ROUNDS) == returned(rewards, [0.5] * ROUNDS)
