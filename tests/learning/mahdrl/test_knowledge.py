"""What an agent knows of its own data set: numbers of the fitted curve, or that there is none."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from fl import fits
from fl.errors import InputError
from fl.fitted import read
from fl.streams import stream
from fl.surrogate import Curve
from learning.mahdrl import checkpoint
from learning.mahdrl.brain import Brain, Design
from learning.mahdrl.context import Memory
from learning.mahdrl.knowledge import NUMBERS, knowledge
from learning.mahdrl.learner import UNTOLD, Learner
from learning.mahdrl.policy import Player
from learning.mahdrl.settings import Settings
from learning.mahdrl.shape import Shape
from learning.policy import create
from support.curves import CURVE

SHIPPED = [Curve.of(fit.parameters) for fit in read(Path(fits.__file__).with_name("surrogate.json"))]
KNOWING = Design(context=True, curve=True)


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
    brain = Brain.initial(stream(5, "test"), 1, KNOWING)
    brain.quality[...] *= 2.0
    offers = {tuple(brain.decide(seen, Memory(known=knowledge(curve))).clients) for curve in [None, *SHIPPED]}
    assert len(offers) > 3


def test_a_player_knows_it_in_every_round_and_after_a_pause(make_observation, make_context):
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    brain = Brain.initial(stream(5, "test"), 1, KNOWING)
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
    checkpoint.write(path, "agent", Brain.initial(stream(5, "test"), 1, settings).tensors(), description)
    context = replace(make_context(20), curve=CURVE)
    for options, known in (({}, knowledge(CURVE)), ({"curve": False}, knowledge(None))):
        policy = create("mahdrl", context, {"checkpoint": str(path)} | options)
        assert policy._memory.known.tolist() == known.tolist()
    with pytest.raises(InputError, match="curve must be true or false, not 1"):
        create("mahdrl", context, {"checkpoint": str(path), "curve": 1})
