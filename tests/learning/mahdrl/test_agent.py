"""A `mahdrl` agent's decisions: its symmetries, odd markets, several critics, memory, and random offers to explore."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from fl.arithmetic.streams import stream, stream_key
from flmarket.core.errors import InputError
from learning.mahdrl.agent import Brain, Player, networks_of, random_offer
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.market_model import STANDING, START, ActiveRivals, RunMemory, knowledge
from learning.mahdrl.planner import price_levels
from learning.policy import POLICIES
from learning.training import agent_files
from learning.training.agent_files import shipped
from support.curves import CURVE
from support.networks import constant

PLAIN = networks_of(MahdrlSettings())
KNOWING = MahdrlSettings(context=True, curve=True)


@pytest.fixture
def brain():
    return Brain.initial(stream(5, "test"))


@pytest.mark.parametrize(("cores", "chance"), [(1, 1 / 64), (2, 10 / 64), (3, 37 / 64)])
def test_the_chance_to_be_served_is_that_of_fewer_than_k_who_outbid(brain, cores, chance):
    # Each of three rivals outbids with a chance of 3/4, at each of 5 prices of each of 3 clients.
    brain = replace(brain, win=constant(PLAIN.win, [np.log(3.0)]))
    found = brain.chances(np.zeros((3, 5, 3, STANDING)), cores, np.zeros(0, np.float32))
    np.testing.assert_allclose(found, np.full((3, 5), chance), rtol=1e-5)


def test_renaming_clients_renames_the_offer(brain, seen):
    order = np.random.default_rng(0).permutation(20)
    plain = brain.decide(seen)
    renamed = brain.decide(replace(seen, bids=seen.bids[:, order], dqi=seen.dqi[order]))
    assert order[renamed.clients].tolist() == plain.clients.tolist()
    np.testing.assert_allclose(renamed.payments, plain.payments)


@pytest.mark.parametrize(("services", "clients"), [(1, 1), (1, 20), (2, 1), (5, 60), (40, 7)])
def test_one_agent_plays_markets_of_any_size(make_market, brain, services, clients):
    market = make_market([f"s{m}" for m in range(services)], rounds=2, count=clients)
    while not market.finished:
        market.close_round({name: brain.decide(seen) for name, seen in market.open_round().items()})


def test_of_clients_that_are_alike_the_lot_decides(make_observation, brain):
    """Two services that see the same clients, all of them alike, want the same ones, unless each draws lots."""
    seen = make_observation(np.full((2, 20), 4.0), np.full(20, 0.5))  # a budget for five
    other = replace(seen, key=stream_key(0, "policy", "s1", 1))
    for lots in (False, True):
        brain = replace(brain, settings=MahdrlSettings(lots=lots))
        first, second = (set(brain.decide(one).clients.tolist()) for one in (seen, other))
        assert (first == second) != lots
        assert first == set(brain.decide(seen).clients.tolist()), "a lot is the same whenever it is drawn"
        assert lots or first == set(range(len(first)))


def test_payments_frozen_at_the_bid(make_observation, brain):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(8, 20)), rng.random(20), cores=1)
    win = np.zeros((1, PLAIN.win.parameters), dtype=np.float32)
    win[0, PLAIN.win.sizes[1]] = 1.0  # the first hidden neuron sees whether a rival's bid reaches the price,
    win[0, (PLAIN.win.sizes[0] + 1) * PLAIN.win.sizes[1]] = 12.0  # and then the rival all but surely outbids,
    win[0, -1] = -6.0  # else it does not
    none_served = constant(PLAIN.count, [-5.0, 0.0, 0.0])
    free, frozen = (
        Brain(brain.quality, none_served, win, MahdrlSettings(payments=p)).decide(seen) for p in ("plan", "bid")
    )
    assert (free.payments > seen.own_bids[free.clients] + 1e-3).any(), "this brain overbids where it may"
    np.testing.assert_allclose(frozen.payments, seen.own_bids[frozen.clients], atol=1e-6)


def test_the_only_client_is_contested(make_observation):
    seen = make_observation([[5.0], [5.5], [4.0]], dqi=[0.5], budget=5.8, cores=1)
    for seed in range(20):
        assert len(Brain.initial(stream(seed, "test")).decide(seen).clients) == 1


def test_no_client_is_affordable(make_observation, brain):
    seen = make_observation([[5.0, 6.0]], budget=1.0)
    assert len(brain.decide(seen).clients) == 0
    assert len(random_offer(seen, stream(0, "test")).clients) == 0


def test_an_agent_with_several_critics_goes_by_their_mean(seen):
    brain = Brain.initial(stream(5, "test"), MahdrlSettings(members=3))
    each = [brain.member(index).reasons(seen).q for index in range(3)]
    assert not np.allclose(each[0], each[1])
    np.testing.assert_allclose(brain.reasons(seen).q, np.mean(each, axis=0), rtol=1e-12)


def test_what_it_remembers_changes_what_it_does(seen):
    brain = Brain.initial(np.random.default_rng(3), MahdrlSettings(context=True, budget=True))
    sums = START.sums.copy()
    sums[2:4] = 200.0, 0.0  # all offers at the bid were refused
    before, after = (brain.reasons(replace(seen, cores=1), memory) for memory in (START, RunMemory(sums)))
    assert not np.array_equal(before.at_bid, after.at_bid)


def test_a_player_remembers_the_run_and_knows_its_curve_also_after_a_pause(seen, make_context):
    brain = Brain.initial(stream(5, "test"), KNOWING)
    player = Player(replace(make_context(20, services=3), curve=CURVE), brain)
    player.remember(seen, offer := player.act(seen), np.ones(len(offer.clients), dtype=np.bool_))
    again = Player(player.context, brain)
    again.restore(player.state())
    assert again._memory.known.tolist() == knowledge(CURVE).tolist()
    assert again._memory.sums.tolist() == player._memory.sums.tolist() != START.sums.tolist()


def test_an_agent_can_be_played_without_its_curve(make_context, tmp_path):
    path = tmp_path / "agent.safetensors"
    description = {"policy": "mahdrl", "agents": None, "settings": asdict(KNOWING)}
    agent_files.write(path, "agent", Brain.initial(stream(5, "test"), KNOWING).tensors(), description)
    context = replace(make_context(20), curve=CURVE)
    for options, known in (({}, knowledge(CURVE)), ({"curve": False}, knowledge(None))):
        policy = POLICIES.create("mahdrl", context, **({"checkpoint": str(path)} | options))
        assert policy._memory.known.tolist() == known.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"payments": "much"}, 'payments must be "plan", "far" or "bid"'),
        ({"curve": 1}, "curve must be true or false, not 1"),
    ],
)
def test_options_are_checked(make_context, options, message):
    with pytest.raises(InputError, match=message):
        POLICIES.create("mahdrl", make_context(), **options)


def test_half_of_the_clients_of_a_random_offer_are_paid_any_level_and_the_others_their_bid(make_observation):
    seen = make_observation([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0]], cores=1, budget=1000.0)
    levels = price_levels(seen, ActiveRivals.of(seen).bids)
    count = levels.shape[1]
    assert count > 2
    rng, at = np.random.default_rng(0), np.zeros(count)
    for _ in range(700):
        offer = random_offer(seen, rng)
        for client, payment in zip(offer.clients, offer.payments, strict=True):
            at += levels[client] == payment
        frozen = random_offer(seen, rng, payments="bid")
        assert list(frozen.payments) == [seen.own_bids[client] for client in frozen.clients]
    expected = np.full(count, 0.5 / count)
    expected[0] += 0.5
    np.testing.assert_allclose(at / at.sum(), expected, atol=0.03)


def test_the_agent_of_a_single_market_was_trained_with_the_defaults():
    described = json.loads(shipped("mahdrl-single").with_suffix(".json").read_text())["settings"]
    defaults = asdict(MahdrlSettings())
    assert {name: described.get(name, default) for name, default in defaults.items()} == defaults


def test_the_agent_of_any_market_sees_the_context_and_was_trained_in_drawn_markets():
    described = json.loads(shipped("mahdrl").with_suffix(".json").read_text())
    assert all(described["settings"][name] for name in ("context", "curve", "lots", "hindsight"))
    assert described["agents"] is None
    assert all(name.startswith("drawn-0-") for name, _ in described["scenarios"])
    assert len(described["scenarios"]) >= 100
