"""The runs of a batch: what options set in the place of a scenario, and all policies at once."""

from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.running.options import RunOptions
from scenarios.running.planning import expand, planned


def test_a_backend_and_rounds_take_the_place_of_the_scenarios(one_service: str, tmp_path: Path) -> None:
    options = RunOptions(out=tmp_path, backend="surrogate", rounds=2)
    [run] = planned([load("quickstart")], [], [0], options, Shelf())
    assert (run.scenario.training.backend, run.scenario.rounds) == ("surrogate", 2)
    with pytest.raises(InputError, match="--backend none: must be 'real'"):
        planned([parse(one_service)], [], [0], RunOptions(backend="none"), Shelf())


def test_all_are_the_policies_that_can_play_and_the_others_are_named() -> None:
    names, notes = expand(["fmore(weight=4)", "all"], [load("quickstart")], Shelf())
    assert names == ["fmore(weight=4)", *(name for name in POLICIES.names() if name != "mahdrl-paper")]
    [note] = notes  # Algorithm 1 has an agent for each of the paper's services, and for no other
    assert "mahdrl-paper is not among all policies here" in note
    assert expand(["all"], [load("paper")], Shelf()) == (POLICIES.names(), [])
