"""Runs with groups of clients: verified, forked, exported, and in lockstep with what the market plays."""

from pathlib import Path

import pandas as pd
import pytest

import flmarket
from flmarket.analysis.results.export import export
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.logs.directory import RunDirectory

GROUPS = [
    {"name": "servers", "count": 4, "data_size": [400, 800], "emd": [0.2], "speed": [4], "cost": {"per_sample": 0.03}},
    {"name": "phones", "count": 10, "data_size": [50], "departure_rate": 0.4},
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> flmarket.Results:
    changes = {"training.backend": "surrogate", "rounds": 8, "clients.groups": GROUPS, "timeline.deadline": 4}
    out = tmp_path_factory.mktemp("grouped")
    return flmarket.run(flmarket.load("paper", changes), ["hqfa", "random"], 2, jobs=2, out=out, progress=False)


@pytest.mark.slow
def test_every_rule_holds_and_a_run_repeats(results: flmarket.Results) -> None:
    for path in results.paths:
        run = RunDirectory(path)
        assert verify(run).problems == []
    assert rerun(run, Shelf()) == []


def test_data_of_another_group_is_found(results: flmarket.Results, tmp_path: Path) -> None:
    path = tmp_path / "copy/hqfa/seed-0000"
    path.mkdir(parents=True)
    for file in results.paths[0].iterdir():
        text = file.read_text()
        (path / file.name).write_text(text.replace("count = 4", "count = 5") if file.suffix == ".toml" else text)
    problems = verify(RunDirectory(path)).problems
    assert any("data_size" in problem for problem in problems)


def test_frames_and_exports_name_the_group_of_each_client(results: flmarket.Results, tmp_path: Path) -> None:
    offers = results.offers
    assert list(offers)[list(offers).index("client") + 1] == "group"
    expected = ["servers"] * 4 + ["phones"] * 10 + [""] * 6
    assert offers["group"].tolist() == [expected[client] for client in offers["client"]]
    assert set(offers["data_size"][offers["group"] == "phones"]) == {50}
    assert set(results.events["group"]) == {*expected}
    assert "group" not in results.rounds
    export(results.paths, tmp_path / "offers.csv", "offers")
    written = pd.read_csv(tmp_path / "offers.csv", keep_default_na=False)
    assert written["group"].tolist() == offers["group"].tolist()


def test_a_fork_keeps_the_groups(results: flmarket.Results) -> None:
    [fork] = flmarket.fork(results.paths[0], 4, {"clients.cores": 1}, progress=False)
    assert fork.run.scenario.clients.groups == results.runs[0].setting.scenario.clients.groups
    assert verify(RunDirectory(fork.path)).problems == []
