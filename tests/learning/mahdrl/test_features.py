"""What networks see: a round's clients, which market this is, a memory of the run, and what is known before it."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from des.observation import Offer
from fl.arithmetic.streams import stream
from fl.surrogate import fits
from fl.surrogate.curves import Curve
from fl.surrogate.fitted import read
from flmarket.core.errors import InputError
from learning.client_selection.scaling import standardised
from learning.mahdrl import agent_file
from learning.mahdrl.agent import START, Brain
from learning.mahdrl.features import CONTEXT, NUMBERS, Memory, client_features, context, knowledge, means
from learning.mahdrl.learner import UNTOLD, Learner
from learning.mahdrl.policy import Player
from learning.mahdrl.settings import Settings
from learning.mahdrl.training import Shape
from learning.policy import create
from support.curves import CURVE


def test_dqi_and_bids_are_standardised_over_the_clients(make_observation):
    features = client_features(make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], round_=20))
    expected = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)
    np.testing.assert_allclose(features[:, 0], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 1], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 2], 0.25)


def test_what_the_budget_can_buy(make_observation):
    features = client_features(make_observation([[2.0, 4.0, 6.0]], budget=20.0))
    np.testing.assert_allclose(features[:, 3], np.log(5.0), rtol=1e-6)
    assert means(make_observation([[0.0, 0.0]], budget=20.0)) == 3.0
    assert means(make_observation([[2.0, 4.0]], budget=0.0)) == -3.0


def test_a_budget_that_is_not_seen(make_observation):
    seen = make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], budget=20.0, round_=20)
    assert client_features(seen, budget=False)[:, 3].tolist() == [0.0] * 3


RNG = np.random.default_rng(0)
BIDS, DQI = RNG.uniform(1, 9, size=(3, 20)), RNG.random(20)


def known(seen, memory=START):
    return dict(zip(CONTEXT, context(seen, memory).tolist(), strict=True))


def test_it_has_no_units(make_observation):
    """Prices in another currency, and a DQI on another scale, are the same market."""
    here = known(make_observation(BIDS, DQI, budget=20.0))
    there = known(make_observation(100 * BIDS, 5 + 0.001 * DQI, budget=2000.0))
    assert there == pytest.approx(here, abs=1e-5)


def test_it_tells_markets_apart_by_how_dqi_goes_with_the_bids(make_observation):
    for dqi, expected in ((BIDS[0], 1.0), (-BIDS[0], -1.0), (np.ones(20), 0.0)):
        assert known(make_observation(BIDS, dqi))["agreement"] == pytest.approx(expected, abs=1e-6)
    middling = np.mean(standardised(DQI) * standardised(BIDS[0]))
    assert known(make_observation(BIDS, DQI))["agreement"] == pytest.approx(middling, abs=1e-6)


def test_scarcity_is_what_all_could_buy_over_what_there_is(make_observation):
    flat = np.full((3, 20), 2.0)  # a budget of 20 buys ten clients, for each of three services; 20 clients have 2 cores
    scarcity = known(make_observation(flat, DQI, budget=20.0, cores=2))["scarcity"]
    assert scarcity == pytest.approx(np.log(30 / 40), abs=1e-6)
    rich = make_observation(flat, DQI, budget=1e6, cores=2)  # nobody wants a client twice
    assert known(rich)["scarcity"] == pytest.approx(np.log(60 / 40), abs=1e-6)
    assert known(make_observation(flat, DQI, budget=0.0))["scarcity"] == -3.0


def test_beyond_what_was_trained_a_market_looks_like_the_nearest_that_was(make_observation):
    def of(clients):
        return known(make_observation(np.full((2, clients), 2.0), np.ones(clients)))["clients"]

    assert of(1) == of(7) < of(9) < of(79) < of(80) == pytest.approx(of(300), abs=0.01)


def test_the_agreement_is_the_mean_over_the_rounds_so_far(make_observation):
    nothing = Offer(np.zeros(0, np.int64), np.zeros(0))
    memory = START
    for dqi in (BIDS[0], -BIDS[0]):
        memory = memory.after(make_observation(BIDS, dqi), nothing, np.zeros(0, np.bool_))
    agreement = known(make_observation(BIDS, BIDS[0]), memory)["agreement"]
    assert agreement == pytest.approx((1.0 - 1.0 + 1.0) / 3, abs=1e-6)


def test_markets_without_numbers_to_divide_by(make_observation):
    for seen in (
        make_observation(np.zeros((3, 20)), DQI, budget=0.0),
        make_observation(np.zeros((1, 1)), np.zeros(1)),
        make_observation(BIDS[:1], DQI, budget=1e9),
    ):
        assert np.isfinite(context(seen, START)).all()


def played(market, learner, seen, offers):
    came = market.close_round(offers).feedback
    learner.remember(seen, offers, came)
    return came


def test_it_remembers_what_came_of_offers_and_of_this_run_alone(make_market):
    market, names = make_market(["alpha", "beta", "gamma"], cores=1, budget=100_000_000), ("alpha", "beta", "gamma")
    learner = Learner([names], [Shape(names, 20, 1, 6, dict.fromkeys(names, 100.0))], 7, Settings(context=True))
    learner.begin(1)
    seen = market.open_round()
    clients = np.arange(3)
    bids = {name: seen[name].own_bids[clients] for name in names}
    above = np.round(np.max([*bids.values()], axis=0) + 0.5, 6)
    offers = {name: Offer(clients, above if name == "alpha" else bids[name]) for name in names}
    came = played(market, learner, seen, offers)
    seen = market.open_round()
    winner, loser = (known(seen[name], learner._memories[name]) for name in ("alpha", "beta"))
    assert winner["won above bid"] == pytest.approx(4 / 5)  # three of three, shrunk towards one half
    assert winner["won at bid"] == 0.5
    assert loser["won at bid"] == pytest.approx((1 + came["beta"].won.sum()) / 5)
    learner.begin(2)
    assert known(seen["alpha"], learner._memories.get("alpha", START))["won above bid"] == 0.5


def test_what_it_remembers_changes_what_it_does(make_observation):
    brain = Brain.initial(np.random.default_rng(3), Settings(context=True, budget=True))
    seen = make_observation(BIDS, DQI, budget=30.0, cores=1)
    memory = START
    before = brain.reasons(seen, memory)
    sums = memory.sums.copy()
    sums[2:4] = 200.0, 0.0  # all offers at the bid were refused
    after = brain.reasons(seen, type(memory)(sums))
    assert not np.array_equal(before.at_bid, after.at_bid)


SHIPPED = [Curve.of(fit.parameters) for fit in read(Path(fits.__file__).with_name("surrogate.json"))]
KNOWING = Settings(context=True, curve=True)


def test_nothing_is_known_of_a_data_set_that_was_never_trained_on():
    assert knowledge(None).tolist() == [0.0] * len(NUMBERS)


def test_curves_that_come_with_flmarket_are_told_apart_and_fill_the_ranges():
    known = np.array([knowledge(curve) for curve in SHIPPED])
    assert (known[:, 0] == 1.0).all()
    assert len({tuple(row) for row in known.tolist()}) == len(SHIPPED)
    assert (known[:, 1:].max(axis=0) > 0.75).all()
    assert (known[:, 1:].min(axis=0) < -0.75).all()


def test_a_curve_beyond_them_looks_like_the_nearest():
    assert knowledge(replace(CURVE, step_emd=-99.0)).tolist() == knowledge(replace(CURVE, step_emd=-0.75)).tolist()


def test_neither_noise_nor_luck_is_known():
    assert knowledge(CURVE).tolist() == knowledge(CURVE.noiseless()).tolist()


def test_an_agent_decides_by_what_it_knows(make_observation):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    brain = Brain.initial(stream(5, "test"), KNOWING)
    brain.quality[...] *= 2.0
    offers = {tuple(brain.decide(seen, Memory(known=knowledge(curve))).clients) for curve in [None, *SHIPPED]}
    assert len(offers) > 3


def test_a_player_knows_it_in_every_round_and_after_a_pause(make_observation, make_context):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    brain = Brain.initial(stream(5, "test"), KNOWING)
    player = Player(replace(make_context(20, services=3), curve=SHIPPED[0]), brain)
    offer = player.act(seen)
    player.remember(seen, offer, np.ones(len(offer.clients), dtype=np.bool_))
    again = Player(player.context, brain)
    again.restore(player.state())
    for one in (player, again):
        assert one._memory.known.tolist() == knowledge(SHIPPED[0]).tolist()
        assert one._memory.sums.tolist() == player._memory.sums.tolist()


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, UNTOLD), (0.0, 0.0)])
def test_who_explores_is_now_and_then_not_told(make_observation, epsilon, share):
    seen = {"s0": make_observation(np.full((1, 4), 2.0), np.ones(4))}
    shape = Shape(("s0",), 4, 1, 6, {"s0": 100.0}, {"s0": CURVE})
    learner, untold = Learner([("s0",)], [shape], 0, Settings(context=True, curve=True)), 0
    for episode in range(200):
        learner.begin(episode)
        learner.act(seen, epsilon)
        untold += not learner._memories["s0"].known.any()
    assert untold / 200 == pytest.approx(share, abs=0.08 if share else 0.0)


def test_an_agent_can_be_told_nothing(make_context, tmp_path):
    path = tmp_path / "agent.safetensors"
    settings = Settings(context=True, curve=True)
    description = {"policy": "mahdrl", "agents": None, "settings": asdict(settings)}
    agent_file.write(path, "agent", Brain.initial(stream(5, "test"), settings).tensors(), description)
    context = replace(make_context(20), curve=CURVE)
    for options, known in (({}, knowledge(CURVE)), ({"curve": False}, knowledge(None))):
        policy = create("mahdrl", context, {"checkpoint": str(path)} | options)
        assert policy._memory.known.tolist() == known.tolist()
    with pytest.raises(InputError, match="curve must be true or false, not 1"):
        create("mahdrl", context, {"checkpoint": str(path), "curve": 1})
