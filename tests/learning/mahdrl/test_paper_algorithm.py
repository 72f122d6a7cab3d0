"""Algorithm 1: what its lines store, explore and learn, and what line 11 stores as the reward."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic.streams import stream
from learning.mahdrl.paper import SCALE, PaperLearner, PaperSettings, Rewards
from learning.training.loop import MarketShape

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
