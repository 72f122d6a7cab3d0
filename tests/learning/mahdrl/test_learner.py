"""`mahdrl`: its losses by hand, its symmetries, odd markets, that it learns, and earlier selves."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from fl.arithmetic.streams import stream, stream_key
from learning.mahdrl import learner as selves
from learning.mahdrl.adam import Adam
from learning.mahdrl.advantages import Baseline, advantages, progress
from learning.mahdrl.agent import Brain, networks_of, random_offer
from learning.mahdrl.agent_file import shipped
from learning.mahdrl.learner import Learner, Selves, critic_loss, set_values, win_loss
from learning.mahdrl.settings import FORMER, Settings
from learning.mahdrl.training import Shape
from learning.mahdrl.win_probability import STANDING, Rivals
from learning.policy import PolicyContext, create

PLAIN = networks_of(Settings())
NOTHING = np.zeros(0, dtype=np.float32)


def shape(names, clients=20, rounds=6):
    return Shape(tuple(names), clients, 2, rounds, dict.fromkeys(names, 100.0))


def constant(network, outputs):
    """Parameters of a network that gives ``outputs`` whatever it sees."""
    parameters = np.zeros((1, network.parameters), dtype=np.float32)
    parameters[0, -len(outputs) :] = outputs
    return torch.from_numpy(parameters)


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
    quality, count = constant(PLAIN.quality, [0.5]), constant(PLAIN.count, [-2.0, 0.3, 0.1])
    two = 0.5 + (0.3 + 0.1 * np.log(2)) * np.log(2)
    np.testing.assert_allclose(set_values(quality, count, batch, PLAIN)[0], [two, 0.5, -2.0], rtol=1e-5)
    assert critic_loss(quality, count, batch, PLAIN).item() == pytest.approx((two**2 + 1.0 + 4.0) / 3, rel=1e-5)


def test_only_contested_offers_teach_the_chance_to_be_served():
    batch = {
        "rivals": torch.zeros(1, 2, 2, 3, STANDING),
        "active": torch.tensor([[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]),
        "offered": torch.tensor([[[1.0, 1.0], [1.0, 0.0]]]),
        "won": torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]),
        "contested": torch.tensor([[[1.0], [0.0]]]),
        "rivalry": torch.zeros(1, 2, 0),
    }
    win = constant(PLAIN.win, [np.log(3.0)])  # each of the two active rivals outbids with a chance of 3/4
    one = -(np.log(1 / 16) + np.log(15 / 16)) / 2
    cores = {"cores": torch.ones(1, 2, 1)}
    assert win_loss(win, batch | cores, most=1, networks=PLAIN).item() == pytest.approx(one, rel=1e-5)
    two = -(np.log(7 / 16) + np.log(9 / 16)) / 2
    cores = {"cores": torch.tensor([[[2.0], [1.0]]])}  # of markets with different K
    assert win_loss(win, batch | cores, most=2, networks=PLAIN).item() == pytest.approx(two, rel=1e-5)


@pytest.mark.parametrize(("cores", "chance"), [(1, 1 / 64), (2, 10 / 64), (3, 37 / 64)])
def test_the_chance_to_be_served_is_that_of_fewer_than_k_who_outbid(cores, chance):
    # Each of three rivals outbids with a chance of 3/4, at each of 5 prices of each of 3 clients.
    brain = Brain.initial(stream(5, "test"))
    brain = Brain(brain.quality, brain.count, constant(PLAIN.win, [np.log(3.0)]).numpy())
    found = brain.chances(np.zeros((3, 5, 3, STANDING)), cores, NOTHING)
    np.testing.assert_allclose(found, np.full((3, 5), chance), rtol=1e-5)


def test_renaming_clients_renames_the_offer(make_observation):
    brain = Brain.initial(stream(5, "test"))
    rng = np.random.default_rng(0)
    bids, dqi, order = rng.uniform(1, 9, size=(3, 20)), rng.random(20), rng.permutation(20)
    plain = brain.decide(make_observation(bids, dqi))
    renamed = brain.decide(make_observation(bids[:, order], dqi[order]))
    assert order[renamed.clients].tolist() == plain.clients.tolist()
    np.testing.assert_allclose(renamed.payments, plain.payments)


@pytest.mark.parametrize(("services", "clients"), [(1, 1), (1, 20), (2, 1), (5, 60), (40, 7)])
def test_one_agent_plays_markets_of_any_size(make_market, make_context, services, clients):
    names = [f"s{m}" for m in range(services)]
    brain = Brain.initial(stream(5, "test"))
    market = make_market(names, rounds=2, count=clients)
    while not market.finished:
        market.close_round({name: brain.decide(seen) for name, seen in market.open_round().items()})


def test_of_clients_that_are_alike_the_lot_decides(make_observation):
    """Two services that see the same clients, all of them alike, want the same ones, unless each draws lots."""
    seen = make_observation(np.full((2, 20), 4.0), np.full(20, 0.5))  # a budget for five
    other = replace(seen, key=stream_key(0, "policy", "s1", 1))
    networks = Brain.initial(stream(5, "test"))
    for lots in (False, True):
        brain = replace(networks, settings=Settings(lots=lots))
        first, second = (set(brain.decide(one).clients.tolist()) for one in (seen, other))
        assert (first == second) != lots
        assert first == set(brain.decide(seen).clients.tolist()), "a lot is the same whenever it is drawn"
        assert lots or first == set(range(len(first)))


def test_payments_frozen_at_the_bid(make_observation):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(8, 20)), rng.random(20), cores=1)
    win = np.zeros((1, PLAIN.win.parameters), dtype=np.float32)
    win[0, PLAIN.win.sizes[1]] = 1.0  # the first hidden neuron sees whether a rival's bid reaches the price,
    win[0, (PLAIN.win.sizes[0] + 1) * PLAIN.win.sizes[1]] = 12.0  # and then the rival all but surely outbids,
    win[0, -1] = -6.0  # else it does not
    nobody = constant(PLAIN.count, [-5.0, 0.0, 0.0]).numpy()
    quality = Brain.initial(stream(5, "test")).quality
    free, frozen = (Brain(quality, nobody, win, Settings(payments=p)).decide(seen) for p in ("plan", "bid"))
    assert (free.payments > seen.own_bids[free.clients] + 1e-3).any(), "this brain overbids where it may"
    np.testing.assert_allclose(frozen.payments, seen.own_bids[frozen.clients], atol=1e-6)


def test_it_plays_the_slow_average_and_explores_with_what_learns(make_observation):
    names = ("alpha",)
    learner = Learner([names], [shape(names)], 7, Settings())
    learner.played.quality[...] = Brain.initial(stream(9, "test")).quality
    rng = np.random.default_rng(0)
    seen = {"alpha": make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))}
    learner.begin(1)
    assert learner.act(seen, 0.0)["alpha"].clients.tolist() == learner.played.decide(seen["alpha"]).clients.tolist()
    assert learner.act(seen, 1e-9)["alpha"].clients.tolist() == learner.brain.decide(seen["alpha"]).clients.tolist()
    assert learner.brain.decide(seen["alpha"]).clients.tolist() != learner.played.decide(seen["alpha"]).clients.tolist()


@pytest.mark.parametrize(("cores", "contested"), [(2, 1.0), (1, 1.0), (3, 0.0)])
def test_while_k_is_raised_offers_teach_nothing_about_rivals(make_market, cores, contested):
    names = ("alpha", "beta", "gamma")
    learner = Learner([names], [shape(names, rounds=2)], 7, Settings())  # learns of markets with K = 2
    for episode in (1, 2):
        play(learner, make_market(names, seed=episode, rounds=2, cores=cores), episode, 1.0)
    assert (learner._replay.fields["contested"][0, : learner._replay.stored[0]] == contested).all()


def test_updates_carry_over_from_episode_to_episode(make_market):
    names = ("alpha",)

    def learned(*, interrupted):
        learner = Learner([names], [shape(names, rounds=5)], 7, Settings(updates=0.3))
        for episode in range(1, 6):
            play(learner, make_market(names, seed=episode, rounds=5), episode, 0.5)
            if interrupted:
                state = {name: np.array(values) for name, values in learner.state().items()}
                learner = Learner([names], [shape(names, rounds=5)], 7, Settings(updates=0.3))
                learner.restore(state)
        return learner.agent()

    whole, resumed = learned(interrupted=False), learned(interrupted=True)
    for name in whole:
        np.testing.assert_array_equal(whole[name], resumed[name])


def test_the_only_client_is_contested(make_observation):
    seen = make_observation([[5.0], [5.5], [4.0]], dqi=[0.5], budget=5.8, cores=1)
    for seed in range(20):
        assert len(Brain.initial(stream(seed, "test")).decide(seen).clients) == 1


def test_nobody_is_affordable(make_observation):
    seen = make_observation([[5.0, 6.0]], budget=1.0)
    assert len(Brain.initial(stream(5, "test")).decide(seen).clients) == 0
    assert len(random_offer(seen, stream(0, "test")).clients) == 0


def test_all_leave_in_the_first_round(make_market):
    names = ("alpha", "beta", "gamma")
    learner = Learner([names], [shape(names)], 0, Settings())
    for episode in (1, 2, 3):
        losses = play(learner, make_market(names, seed=episode, target=0.11), episode, 1.0)
    assert losses.keys() == {"critic_loss", "win_loss"}
    assert all(np.isfinite(values).all() for values in learner.state().values())


def test_no_offer_is_ever_served(make_market):
    names = ("alpha",)
    learner = Learner([names], [shape(names)], 0, Settings())
    for episode in (1, 2, 3):
        play(learner, make_market(names, seed=episode, budget=0), episode, 0.5)
    assert all(np.isfinite(values).all() for values in learner.state().values())


def test_the_same_seed_learns_the_same(make_market):
    names = ("alpha", "beta", "gamma")
    states = []
    for _ in range(2):
        learner = Learner([names], [shape(names)], 7, Settings())
        for episode in (1, 2, 3):
            play(learner, make_market(names, seed=episode), episode, 0.5)
        states.append(learner.state())
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name])


def test_credit_counts_rounds_by_their_usual_error(make_market):
    settings = Settings(horizon=2)
    learner, curves = Learner([("s0",)], [shape(["s0"])], 0, settings), []
    for episode in (1, 2):
        play(learner, make_market(["s0"], seed=episode), episode, epsilon=1.0)
        curves.append(progress(learner._episodes["s0"].accuracies))
    baseline = Baseline(1, 6)
    assert baseline.deviations(0, curves[0]) is None  # nothing is stored of the first episode
    weights = baseline.errors(0)
    expected = advantages(baseline.deviations(0, curves[1]), weights, horizon=2, scale=settings.scale)
    np.testing.assert_allclose(learner._replay.fields["advantage"][0, :6, 0], expected, rtol=1e-5)


def test_the_agent_of_a_single_market_was_trained_with_the_defaults():
    described = json.loads(shipped("mahdrl-single").with_suffix(".json").read_text())["settings"]
    former = {name: value for name, value in FORMER.items() if name in described}
    assert {**asdict(Settings()), **former, **described} == {**asdict(Settings()), **former}


def test_the_agent_of_any_market_sees_the_context_and_was_trained_in_drawn_markets():
    described = json.loads(shipped("mahdrl").with_suffix(".json").read_text())
    assert all(described["settings"][name] for name in ("context", "curve", "lots", "hindsight"))
    assert described["agents"] is None
    assert all(name.startswith("drawn-0-") for name, _ in described["scenarios"])
    assert len(described["scenarios"]) >= 100


def test_it_learns_which_clients_are_worth_it(make_market, make_context):
    """With FormulaFederation only large data sets make progress: who sees that clearly does better than the blind."""
    names = ("alpha", "beta")

    def final(decide, seed):
        market = make_market(names, seed=seed, rounds=8)
        while not market.finished:
            market.close_round({name: decide(name, seen) for name, seen in market.open_round().items()})
        return np.mean([state.accuracy for state in market.states])

    learner = Learner([names], [shape(names, rounds=8)], 0, Settings(updates=4.0))
    for episode in range(1, 31):
        play(learner, make_market(names, seed=1000 + episode, rounds=8), episode, max(0.1, 1 - episode / 20))
    blind = create("random", make_context())
    learned = [final(lambda name, seen: learner.played.decide(seen), seed) for seed in range(10)]
    random = [final(lambda name, seen: blind.act(seen), seed) for seed in range(10)]
    untrained = Brain.initial(stream(0, "agent"))
    before = [final(lambda name, seen: untrained.decide(seen), seed) for seed in range(10)]
    assert np.mean(learned) > np.mean(random) + 0.01
    assert np.mean(learned) > np.mean(before) + 0.01


def test_it_learns_to_overbid_where_that_decides(make_observation):
    """Served exactly when paying more than the rival's bid: the chance learned must tell the two apart."""
    win = torch.from_numpy(Brain.initial(stream(0, "test")).win).requires_grad_()
    rng, adam = np.random.default_rng(0), Adam(win, 1e-2)

    def standing(prices, rivals):
        seen = make_observation(np.stack([np.full(len(rivals), 9.0), rivals]), cores=1)
        return Rivals.of(seen).standing(prices[:, None], most=1)

    for _ in range(300):
        rivals = rng.uniform(1, 9, size=40)
        prices = rng.uniform(1, 9, size=40) * rng.choice([1.0, 1.5], size=40)
        batch = {
            "rivals": torch.from_numpy(standing(prices, rivals).astype(np.float32)[None, :, :1]),
            "active": torch.ones(1, 40, 1),
            "offered": torch.ones(1, 40, 1),
            "won": torch.from_numpy((prices > rivals).astype(np.float32)[None, :, None]),
            "contested": torch.ones(1, 40, 1),
            "cores": torch.ones(1, 40, 1),
            "rivalry": torch.zeros(1, 40, 0),
        }
        adam.step(torch.autograd.grad(win_loss(win, batch, most=1, networks=PLAIN), win)[0])
    brain = Brain.initial(stream(0, "test"))
    trained = Brain(brain.quality, brain.count, win.detach().numpy())
    low, high = trained.chances(standing(np.array([4.0, 6.1]), np.array([6.0, 6.0])), 1, NOTHING)[:, 0]
    assert low < 0.2
    assert high > 0.8


def test_what_is_played_follows_what_learns(make_market):
    names = ("alpha", "beta")
    learner = Learner([names], [shape(names)], 7, Settings(average=0.5))
    for episode in (1, 2):
        play(learner, make_market(names, seed=episode), episode, 1.0)
    before, learning = learner.played.quality.copy(), learner.brain.quality.copy()
    learner._follow()
    np.testing.assert_allclose(learner.played.quality, (before + learning) / 2, rtol=1e-6)
    assert learner.agent()["quality"] is learner.played.quality


def test_a_client_that_left_teaches_nothing_about_rivals(make_market):
    """Its offer won, whatever became of it: the chance to win is learned from defeats alone."""
    market = make_market(["alpha"], departure_rate=1.0)
    learner = Learner([["alpha"]], [shape(["alpha"])], 7, Settings())
    learner.begin(0)
    seen = market.open_round()
    offers = learner.act(seen, epsilon=0.0)
    learner.observe(seen, offers, market.close_round(offers).feedback)
    [transition] = learner._episodes["alpha"].transitions
    assert not transition["served"].any()
    assert transition["won"].all()


CONTEXT = PolicyContext("mnist", 3, 20, 2, 80, 20.0, 0.97, 60.0)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(selves, "EVERY", 2)


def test_at_first_there_are_none():
    kept, brain = Selves(0), Brain.initial(stream(1, "test"))
    kept.keep(1, brain)
    assert kept.player(CONTEXT, 2, brain) is None


def test_they_play_as_the_agent_did_then(make_observation):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    kept, brain = Selves(0), Brain.initial(stream(1, "test"))
    then = brain.decide(seen)
    kept.keep(2, brain)
    brain.quality[...] *= -1.0  # it learns
    assert list(brain.decide(seen).clients) != list(then.clients)
    offer = kept.player(CONTEXT, 3, brain).act(seen)
    np.testing.assert_array_equal(offer.clients, then.clients)
    np.testing.assert_array_equal(offer.payments, then.payments)


def test_all_of_them_come_up_and_resumed_the_same_ones_do():
    kept, brain = Selves(0), Brain.initial(stream(1, "test"))
    for episode in range(1, 7):
        brain.win[...] = episode
        kept.keep(episode, brain)
    again = Selves(0)
    again.restore(kept.state())
    drawn = [[one.player(CONTEXT, episode, brain)._brain.win[0, 0] for episode in range(40)] for one in (kept, again)]
    assert set(drawn[0]) == {2.0, 4.0, 6.0}
    assert drawn[0] == drawn[1]
