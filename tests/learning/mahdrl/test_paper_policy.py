"""`mahdrl-paper` in a market: the agent that comes with flmarket plays the services that it was trained for."""

import json
from dataclasses import asdict
from shutil import copy

import numpy as np
import pytest

from learning.episode import play
from learning.mahdrl.paper import PaperSettings
from learning.policy import POLICIES
from learning.seats import seat
from learning.training.agent_files import CheckpointError, shipped
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load


def paper(*overrides):
    scenario = load("paper", ["training.backend=surrogate", "rounds=3", *overrides])
    return build_market(scenario, 0, build_federation(scenario, 0, Shelf(), workers=1))


@pytest.mark.parametrize("clients", [20, 21])
def test_the_shipped_agent_plays_the_papers_market_and_any_number_of_clients(clients):
    market, reports = paper(f"clients.count={clients}"), []
    play(market, seat(market, dict.fromkeys([spec.name for spec in market.services], "mahdrl-paper")), [reports.append])
    assert len(reports) == 3
    assert all(len(came.served) > 0 for report in reports for came in report.feedback.values())


def test_the_shipped_agent_was_trained_with_the_defaults():
    described = json.loads(shipped("mahdrl-paper").with_suffix(".json").read_text())
    assert json.loads(json.dumps(asdict(PaperSettings()))).items() <= described["settings"].items()
    assert (described["backend"], described["plan"]["episodes"], described["plan"]["seed"]) == ("surrogate", 200, 0)


def test_it_plays_no_service_that_it_was_not_trained_for(make_context):
    with pytest.raises(CheckpointError, match="has agents for mnist, fashion-mnist, emnist, but none for service 's0'"):
        POLICIES.create("mahdrl-paper", make_context())


def test_settings_that_cannot_be_are_refused(tmp_path, make_context):
    path = tmp_path / "agent.safetensors"
    for file in (shipped("mahdrl-paper"), shipped("mahdrl-paper").with_suffix(".json")):
        copy(file, tmp_path / f"agent{file.suffix}")
    described = path.with_suffix(".json")
    wrong = {"settings": {"hidden": "many"}, "agents": ["s0"]}
    described.write_text(json.dumps(json.loads(described.read_text()) | wrong))
    with pytest.raises(CheckpointError, match=r"agent\.json: settings\.hidden: "):
        POLICIES.create("mahdrl-paper", make_context(), checkpoint=str(path))


def test_equal_observations_get_equal_offers():
    market = paper()
    policy = seat(market, {"mnist": "mahdrl-paper"})["mnist"]
    seen = market.open_round()["mnist"]
    first, second = policy.act(seen), policy.act(seen)
    np.testing.assert_array_equal(first.clients, second.clients)
    np.testing.assert_array_equal(first.payments, second.payments)
