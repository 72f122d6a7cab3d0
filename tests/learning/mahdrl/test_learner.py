"""`mahdrl` learns: its losses by hand, what is stored, what is played, and its earlier selves."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.arithmetic.streams import stream
from learning.mahdrl import learner as module
from learning.mahdrl.advantages import Baseline, advantages, progress
from learning.mahdrl.agent import Brain, networks_of
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.learner import WITHOUT_CURVE, MahdrlLearner, critic_loss, set_values, win_loss
from learning.mahdrl.market_model import STANDING, ActiveRivals
from learning.mahdrl.stacked_networks import Adam
from learning.policy import POLICIES, PolicyContext
from learning.training.loop import MarketShape
from support.curves import CURVE
from support.networks import constant

PLAIN = networks_of(MahdrlSettings())
NAMES = ("alpha", "beta", "gamma")


def learner_of(names=NAMES, seed=7, rounds=6, *, selves=False, **settings):
    shape = MarketShape(names, 20, 2, rounds, dict.fromkeys(names, 100.0), dict.fromkeys(names, CURVE))
    return MahdrlLearner([names], [shape], seed, MahdrlSettings(**settings), selves=selves)


def play(learner, market, episode, epsilon):
    learner.begin(episode)
    while not market.finished:
        observations = market.open_round()
        offers = learner.act(observations, epsilon)
        learner.observe(observations, offers, market.close_round(offers).feedback)
    return learner.end()


def test_the_value_of_a_set_is_mean_quality_and_what_its_size_is_worth():
    batch = {
        "clients": torch.zeros(1, 3, 2, 4),
        "served": torch.tensor([[[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]]),
        "situation": torch.zeros(1, 3, 2),
        "advantage": torch.tensor([[[0.0], [1.5], [0.0]]]),
    }
    quality, count = (
        torch.from_numpy(constant(PLAIN.quality, [0.5])),
        torch.from_numpy(constant(PLAIN.count, [-2.0, 0.3, 0.1])),
    )
    two = 0.5 + (0.3 + 0.1 * np.log(2)) * np.log(2)
    np.testing.assert_allclose(set_values(quality, count, batch, PLAIN)[0], [two, 0.5, -2.0], rtol=1e-5)
    assert critic_loss(quality, count, batch, PLAIN).item() == pytest.approx((two**2 + 1.0 + 4.0) / 3, rel=1e-5)


@pytest.mark.parametrize(("cores", "most", "chance"), [([1.0, 1.0], 1, 1 / 16), ([2.0, 1.0], 2, 7 / 16)])
def test_only_contested_offers_teach_the_chance_to_be_served(cores, most, chance):
    batch = {
        "rivals": torch.zeros(1, 2, 2, 3, STANDING),
        "active": torch.tensor([[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]),
        "offered": torch.tensor([[[1.0, 1.0], [1.0, 0.0]]]),
        "won": torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]),
        "contested": torch.tensor([[[1.0], [0.0]]]),
        "cores": torch.tensor([[[k] for k in cores]]),  # of two markets
        "rivalry": torch.zeros(1, 2, 0),
    }
    win = torch.from_numpy(
        constant(PLAIN.win, [np.log(3.0)])
    )  # each of the two active rivals outbids with a chance of 3/4
    expected = -(np.log(chance) + np.log(1 - chance)) / 2
    assert win_loss(win, batch, most=most, networks=PLAIN).item() == pytest.approx(expected, rel=1e-5)


def test_it_plays_the_slow_average_and_explores_with_what_learns(seen):
    learner = learner_of(("alpha",))
    learner.played.quality[...] = Brain.initial(stream(9, "test")).quality
    learner.begin(1)
    played, explored = (learner.act({"alpha": seen}, epsilon)["alpha"].clients.tolist() for epsilon in (0.0, 1e-9))
    assert played == learner.played.decide(seen).clients.tolist()
    assert explored == learner.brain.decide(seen).clients.tolist() != played


def test_what_is_played_follows_what_learns(make_market):
    learner = learner_of(rounds=4, average=0.5, updates=0.25)
    play(learner, make_market(NAMES, seed=1, rounds=4), 1, 1.0)
    before = learner.played.quality.copy()
    play(learner, make_market(NAMES, seed=2, rounds=4), 2, 1.0)  # one update
    assert not np.array_equal(learner.brain.quality, before)
    np.testing.assert_allclose(learner.agent()["quality"], (before + learner.brain.quality) / 2, rtol=1e-6)


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, WITHOUT_CURVE), (0.0, 0.0)])
def test_who_explores_now_and_then_knows_no_curve(make_observation, epsilon, share):
    seen = {"s0": make_observation(np.full((1, 4), 2.0), np.ones(4))}
    learner, without = learner_of(("s0",), context=True, curve=True), 0
    for episode in range(200):
        learner.begin(episode)
        learner.act(seen, epsilon)
        without += not learner._memories["s0"].known.any()
    assert without / 200 == pytest.approx(share, abs=0.08 if share else 0.0)


def test_it_remembers_what_came_of_offers_of_this_run_alone(make_market):
    learner, market = learner_of(context=True), make_market(NAMES)
    learner.begin(1)
    seen = market.open_round()
    offers = learner.act(seen, 1.0)
    came = market.close_round(offers).feedback
    learner.remember(seen, offers, came)
    for name in NAMES:
        assert learner._memory(name).sums[0] == 1
        assert learner._memory(name).sums[[2, 4]].sum() == len(offers[name].clients)
    learner.begin(2)
    assert not learner._memory("alpha").sums.any()


@pytest.mark.parametrize(("cores", "contested"), [(2, 1.0), (1, 1.0), (3, 0.0)])
def test_while_k_is_raised_offers_teach_nothing_about_rivals(make_market, cores, contested):
    learner = learner_of(rounds=2)  # learns of markets with K = 2
    for episode in (1, 2):
        play(learner, make_market(NAMES, seed=episode, rounds=2, cores=cores), episode, 1.0)
    assert (learner._replay.fields["contested"][0, : learner._replay.stored[0]] == contested).all()


def test_a_client_that_left_teaches_nothing_about_rivals(make_market):
    """Its offer won, whatever became of it: the chance to win is learned from defeats alone."""
    market, learner = make_market(["alpha"], departure_rate=1.0), learner_of(("alpha",))
    learner.begin(0)
    seen = market.open_round()
    offers = learner.act(seen, epsilon=0.0)
    learner.observe(seen, offers, market.close_round(offers).feedback)
    [transition] = learner._episodes["alpha"].transitions
    assert not transition["served"].any()
    assert transition["won"].all()


def test_credit_counts_rounds_by_their_usual_error(make_market):
    learner, curves = learner_of(("s0",), seed=0, horizon=2), []
    for episode in (1, 2):
        play(learner, make_market(["s0"], seed=episode), episode, epsilon=1.0)
        curves.append(progress(learner._episodes["s0"].accuracies))
    baseline = Baseline(1, 6)
    assert baseline.deviations(0, curves[0]) is None  # nothing is stored of the first episode
    weights = baseline.errors(0)
    expected = advantages(baseline.deviations(0, curves[1]), weights, horizon=2, scale=learner.settings.scale)
    np.testing.assert_allclose(learner._replay.fields["advantage"][0, :6, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("odd", [{"target": 0.11}, {"budget": 0}], ids=["all leave at once", "no offer is ever served"])
def test_odd_markets_leave_finite_networks(make_market, odd):
    learner = learner_of(seed=0)
    for episode in (1, 2, 3):
        losses = play(learner, make_market(NAMES, seed=episode, **odd), episode, 0.5)
    assert losses.keys() == {"critic_loss", "win_loss"}
    assert all(np.isfinite(values).all() for values in learner.state().values())


def test_the_same_seed_learns_the_same_interrupted_or_not(make_market, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 2)

    def learned(*, interrupted):
        learner = learner_of(rounds=5, selves=True, updates=0.3)
        for episode in range(1, 6):
            play(learner, make_market(NAMES, seed=episode, rounds=5), episode, 0.5)
            if interrupted:
                state = {name: np.array(values) for name, values in learner.state().items()}
                learner = learner_of(rounds=5, selves=True, updates=0.3)
                learner.restore(state)
        return learner.state()

    whole, resumed = learned(interrupted=False), learned(interrupted=True)
    assert whole.keys() == resumed.keys() >= {"selves.win"}
    for name, values in whole.items():
        np.testing.assert_array_equal(values, resumed[name])


@pytest.mark.slow
def test_it_learns_which_clients_are_worth_it(make_market, make_context):
    """With FormulaFederation only large data sets make progress: who sees that clearly does better than the blind."""
    names = ("alpha", "beta")

    def final(decide):
        reached = []
        for seed in range(10):
            market = make_market(names, seed=seed, rounds=8)
            while not market.finished:
                market.close_round({name: decide(seen) for name, seen in market.open_round().items()})
            reached += [state.accuracy for state in market.states]
        return np.mean(reached)

    learner = learner_of(names, 0, 8, updates=4.0)
    for episode in range(1, 31):
        play(learner, make_market(names, seed=1000 + episode, rounds=8), episode, max(0.1, 1 - episode / 20))
    for other in (POLICIES.create("random", make_context()).act, Brain.initial(stream(0, "agent")).decide):
        assert final(learner.played.decide) > final(other) + 0.01


def test_it_learns_to_overbid_where_that_decides(make_observation):
    """Served exactly when paying more than the rival's bid: the chance learned must tell the two apart."""
    win = torch.from_numpy(Brain.initial(stream(0, "test")).win).requires_grad_()
    rng, adam = np.random.default_rng(0), Adam(win, 1e-2)

    def standing(prices, rivals):
        seen = make_observation(np.stack([np.full(len(rivals), 9.0), rivals]), cores=1)
        return ActiveRivals.of(seen).standing(prices[:, None], most=1)

    for _ in range(150):
        rivals = rng.uniform(1, 9, size=40)
        prices = rng.uniform(1, 9, size=40) * rng.choice([1.0, 1.5], size=40)
        batch = {name: torch.ones(1, 40, 1) for name in ("active", "offered", "contested", "cores")} | {
            "rivals": torch.from_numpy(standing(prices, rivals).astype(np.float32)[None, :, :1]),
            "won": torch.from_numpy((prices > rivals).astype(np.float32)[None, :, None]),
            "rivalry": torch.zeros(1, 40, 0),
        }
        adam.step(torch.autograd.grad(win_loss(win, batch, most=1, networks=PLAIN), win)[0])
    trained = replace(Brain.initial(stream(0, "test")), win=win.detach().numpy())
    against = standing(np.array([4.0, 6.1]), np.array([6.0, 6.0]))
    low, high = trained.chances(against, 1, np.zeros(0, np.float32))[:, 0]
    assert low < 0.2
    assert high > 0.8


CONTEXT = PolicyContext("mnist", 3, 20, 2, 80, 20.0, 0.97, 60.0)


def test_earlier_selves_play_as_the_agent_did_then(seen, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 2)
    learner, then = learner_of(selves=True), []
    assert learner.earlier(CONTEXT, 1) is None
    for episode in range(1, 7):
        learner.played.quality[...] = Brain.initial(stream(episode, "test")).quality  # it learns
        learner.begin(episode)
        learner.end()
        then.append(learner.played.decide(seen).clients.tolist())
    drawn = [learner.earlier(CONTEXT, episode).act(seen).clients.tolist() for episode in range(40)]
    assert {tuple(clients) for clients in drawn} == {tuple(clients) for clients in then[1::2]}
    assert len(set(map(tuple, then))) > 3
