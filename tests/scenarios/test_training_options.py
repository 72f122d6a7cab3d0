"""``--option key=value``: how it is read, and what is refused."""

from pathlib import Path

import pytest

from flmarket.cli.arguments import parse_options
from flmarket.core.errors import InputError
from learning.training.loop import Plan
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.train import AgentTraining, run


def test_hyper_parameters_are_checked():
    assert parse_options(["lots=false", "scale=2", "payments=bid", "hidden=[8, 4]"]) == {
        "lots": False,
        "scale": 2,
        "payments": "bid",
        "hidden": (8, 4),
    }
    with pytest.raises(InputError, match="must be KEY=VALUE"):
        parse_options(["lots"])
    with pytest.raises(InputError, match="--option batch: is given twice; leave one out"):
        parse_options(["batch=16", "scale=2", "batch = 8"])
    wrong = [
        ({"lot": 1}, "unknown hyper-parameter 'lot' of mahdrl; did you mean 'lots'?"),
        ({"x": 1}, "unknown hyper-parameter 'x' of mahdrl; choose from payments, budget, context"),
        ({"lots": 1}, "lots = 1: must be a valid boolean"),
        ({"batch": 0}, "batch = 0: must be greater than or equal to 1"),
        ({"learning_rate": float("inf")}, "learning_rate = inf: must be a finite number"),
        ({"average": 0.0}, "average = 0.0: must be greater than 0"),
        ({"payments": "much"}, "payments = 'much': must be 'plan', 'far' or 'bid'"),
    ]
    for options, message in wrong:
        with pytest.raises(InputError, match=message):
            run(
                AgentTraining((load("paper"),), "mahdrl", options, Plan(episodes=1)),
                0,
                Path("nowhere.safetensors"),
                Shelf(),
            )
