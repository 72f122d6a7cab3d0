"""The model of a scenario: what it promises to callers."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from fl.training.regime import Regime
from scenarios.loader import parse


def test_scenarios_are_read_only(market: str) -> None:
    scenario = parse(market)
    with pytest.raises(ValidationError):
        scenario.clients.cores = 3  # type: ignore[misc]


def test_a_data_set_may_train_differently(market: str) -> None:
    scenario = parse(market)
    assert scenario.training_for("mnist") == Regime(learning_rate=0.05, local_epochs=1)
    assert scenario.training_for("digits") == Regime(learning_rate=0.05, local_epochs=3)


def test_services_are_found_by_name(market: str) -> None:
    scenario = parse(market)
    assert scenario.service("digits").budget == 10.5
    with pytest.raises(KeyError):
        scenario.service("emnist")


def test_reading_scenarios_needs_no_torch() -> None:
    code = (
        "import sys, scenarios.loader as l; l.load('quickstart'); l.points(l.load('paper-cores')); "
        "print([m for m in ('torch', 'torchvision', 'textual', 'pandas', 'sklearn', 'simpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
