"""`mahdrl-paper` in a market: the agent that comes with flmarket plays the services that it was trained for."""

import json
from dataclasses import asdict
from shutil import copy

import numpy as np
import pytest

from learning.episode import play
from learning.mahdrl.agent_file import CheckpointError, shipped
from learning.mahdrl.paper.settings import FORMER, Settings
from learning.policy import create
from learning.seats import seat
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load


def paper(*overrides):
    scenario = load("paper", ["training.backend=surrogate", "rounds=3", *overrides])
    return build_market(scenario, 0, build_federation(scenario, 0, Shelf(), workers=1))


def test_the_shipped_agent_plays_the_papers_market():
    market, offers = paper(), []
    names = [spec.name for spec in market.services]
    play(market, seat(market, dict.fromkeys(names, "mahdrl-paper")), [lambda report: offers.append(report)])
    assert len(offers) == 3
    assert all(len(report.feedback[name].served) > 0 for report in offers for name in report.feedback)


def test_the_shipped_agent_was_trained_with_the_defaults():
    described = json.loads(shipped("mahdrl-paper").with_suffix(".json").read_text())
    assert {**FORMER, **asdict(Settings()), "hidden": [120, 60]} == described["settings"]
    assert (described["backend"], described["plan"]["episodes"], described["plan"]["seed"]) == ("surrogate", 200, 0)


def test_one_network_for_all_clients_plays_any_number_of_them():
    market = paper("clients.count=21")
    play(market, seat(market, dict.fromkeys([spec.name for spec in market.services], "mahdrl-paper")))
    assert market.finished


def test_it_plays_no_service_that_it_was_not_trained_for(make_context):
    with pytest.raises(CheckpointError, match="has agents for mnist, fashion-mnist, emnist, but none for service 's0'"):
        create("mahdrl-paper", make_context())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "has no settings; restore it or train again"),
        ({"hidden": "many"}, "was trained with invalid settings: hidden: "),
        ({"selecton": "serial"}, "unknown setting 'selecton' of mahdrl-paper"),
        ({"selection": "serial"}, "was trained with selection = 'serial', which this flmarket cannot play"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, make_context, settings, message):
    path = tmp_path / "agent.safetensors"
    for file in (shipped("mahdrl-paper"), shipped("mahdrl-paper").with_suffix(".json")):
        copy(file, tmp_path / f"agent{file.suffix}")
    described = path.with_suffix(".json")
    described.write_text(json.dumps(json.loads(described.read_text()) | {"settings": settings, "agents": ["s0"]}))
    with pytest.raises(CheckpointError, match=message):
        create("mahdrl-paper", make_context(), {"checkpoint": str(path)})


def test_equal_observations_get_equal_offers(make_observation):
    market = paper()
    policy = seat(market, {"mnist": "mahdrl-paper"})["mnist"]
    seen = market.open_round()["mnist"]
    first, second = policy.act(seen), policy.act(seen)
    np.testing.assert_array_equal(first.clients, second.clients)
    np.testing.assert_array_equal(first.payments, second.payments)
