"""Whole runs: real training on the embedded data sets, into run directories."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from des.observation import Observation, Offer
from fl.data.registry import Dataset, DatasetError
from fl.data.registry import load as load_dataset
from learning.play_round import play_round
from learning.policy import Policy, policy
from scenarios.build import Shelf, build, dqi_parameters
from scenarios.file.schema import Scenario
from scenarios.loader import load, parse, settled
from scenarios.logs.columns import TABLES
from scenarios.logs.run_state import RunState
from scenarios.running.batch import run_all
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions
from support.observers import Observer


@pytest.fixture
def small(two_services: str) -> Scenario:
    return parse(two_services)


@pytest.fixture(scope="module")
def path(two_services: str, tmp_path_factory: pytest.TempPathFactory, shelf: Shelf) -> Path:
    """The directory of a run of the small scenario, only to be read."""
    return run_small(parse(two_services), tmp_path_factory.mktemp("small"), shelf)


def run_small(scenario: Scenario, out: Path, shelf: Shelf, *, workers: int = 0, policies: tuple[str, ...] = ()) -> Path:
    runs = plan([scenario], policies, [0], out, shelf)
    result = run_all(runs, shelf, Observer(), RunOptions(workers=workers))
    assert not result.failed
    return runs[0].directory.path


def test_a_run_leaves_its_scenario_logs_and_meta_data(small: Scenario, path: Path) -> None:
    assert {entry.name for entry in path.iterdir()} == {
        "scenario.toml", "rounds.csv", "offers.csv", "events.csv", "meta.json", "run.log",
    }  # fmt: skip
    assert load(path / "scenario.toml") == settled(small)
    assert json.loads((path / "meta.json").read_text())["training"] == {
        "digits": {
            "model": "cnn", "local_epochs": 1, "batch_size": 10, "learning_rate": 0.05, "momentum": 0.0,
            "from": {
                "model": "fits", "local_epochs": "scenario", "batch_size": "fits", "learning_rate": "fits",
                "momentum": "fits",
            },
        },
    }  # fmt: skip
    assert json.loads((path / "meta.json").read_text())["dqi"] == {
        "digits": {"from": small.dqi, **asdict(dqi_parameters(small.dqi, "digits"))}
    }
    for name in ("rounds", "offers", "events"):
        assert tuple(pd.read_csv(path / f"{name}.csv").columns) == TABLES[name].names


def test_logs_are_rectangular_and_a_service_that_left_keeps_its_accuracy(path: Path) -> None:
    rounds = pd.read_csv(path / "rounds.csv")
    assert list(rounds["round"]) == [1, 1, 2, 2, 3, 3, 4, 4]
    beta = rounds[rounds["service"] == "beta"]
    assert list(beta["status"]) == ["reached", "left", "left", "left"]
    assert (beta["accuracy"] == beta["accuracy"].iloc[0]).all()
    assert np.allclose(beta["reward"], 30**0.05)
    assert list(beta["spent"] > 0) == [True, False, False, False]


def test_another_seed_is_another_world(small: Scenario, tmp_path: Path, shelf: Shelf) -> None:
    runs = plan([small], [], [0, 1], tmp_path, shelf)
    run_all(runs, shelf, Observer(), RunOptions(workers=0))
    one, two = (run.directory.path.joinpath("offers.csv").read_bytes() for run in runs)
    assert one != two


def test_policies_to_be_compared_share_a_directory_and_face_the_same_world(
    small: Scenario, tmp_path: Path, shelf: Shelf
) -> None:
    runs = plan([small], ["random", "lcfa"], [0], tmp_path, shelf)
    assert runs[0].directory.path.parent.parent == runs[1].directory.path.parent.parent
    assert [service.policy for service in runs[1].scenario.services] == ["lcfa", "lcfa"]
    worlds = []
    for run in runs:
        setup = build(run.scenario, 0, shelf, workers=0)
        play_round(setup.market, setup.policies)  # differently, by policy
        observed = setup.market.open_round()["alpha"]
        worlds.append((observed.dqi, observed.own_bids))
        setup.federation.close()
    assert np.array_equal(worlds[0], worlds[1])


def test_a_sweep_runs_every_point_into_a_directory_of_its_own(two_services: str, tmp_path: Path, shelf: Shelf) -> None:
    scenario = parse(two_services + '\n[sweep]\n"clients.cores" = [1, 2]\n"services.alpha.budget" = [5, 6]\n')
    runs = plan([scenario], [], [0], tmp_path, shelf)
    assert [dict(run.sweep) for run in runs] == [
        {"clients.cores": 1, "services.alpha.budget": 5},
        {"clients.cores": 1, "services.alpha.budget": 6},
        {"clients.cores": 2, "services.alpha.budget": 5},
        {"clients.cores": 2, "services.alpha.budget": 6},
    ]
    assert len({run.directory.path for run in runs}) == 4


class Raises(Policy):
    summary = "fails in its second round"

    def act(self, observation: Observation) -> Offer:
        if observation.round == 2:
            raise ZeroDivisionError("a defect of the policy")
        return Offer.none()


def test_a_failing_policy_ends_its_run_and_no_other(small: Scenario, tmp_path: Path, shelf: Shelf) -> None:
    policy("raises")(Raises)
    runs = plan([small], ["raises", "lcfa"], [0], tmp_path, shelf)
    observer = Observer()
    result = run_all(runs, shelf, observer, RunOptions(workers=0))
    assert [run.policy for run in result.failed] == ["raises"]
    assert [run.policy for run in result.complete] == ["lcfa"]
    [message] = observer.said("failed")
    assert "'raises' of service 'alpha'" in message
    assert "round 2" in message
    meta = runs[0].directory.meta()
    assert (meta["status"], meta["error"]) == ("failed", message)
    assert "ZeroDivisionError" in (runs[0].directory.path / "run.log").read_text()
    assert len(pd.read_csv(runs[0].directory.path / "rounds.csv")) == 2  # the round before is kept
    assert runs[0].directory.state is RunState.FAILED


def test_a_diverging_model_is_named(two_services: str, tmp_path: Path, shelf: Shelf) -> None:
    scenario = parse(two_services, overrides=["training.learning_rate=100"])
    runs = plan([scenario], [], [0], tmp_path, shelf)
    observer = Observer()
    result = run_all(runs, shelf, observer, RunOptions(workers=0))
    assert result.failed == runs
    assert "diverged in round" in observer.said("failed")[0]


@pytest.mark.parametrize(
    "overrides",
    [
        ["clients.count=1"],
        ["clients.cores=5"],
        ["services.alpha.budget=0", "services.beta.budget=0"],
        ["services.alpha.budget=0.3", "services.beta.budget=0.3"],  # below every bid
    ],
    ids=["one client", "more cores than services", "no budget", "a budget below every bid"],
)
def test_legal_but_extreme_markets_run(overrides: list[str], two_services: str, tmp_path: Path, shelf: Shelf) -> None:
    path = run_small(parse(two_services, overrides=[*overrides, "rounds=2"]), tmp_path, shelf)
    assert pd.read_csv(path / "rounds.csv")["round"].max() <= 2


def test_a_copy_of_a_data_set_that_is_too_small_is_refused(small: Scenario, tmp_path: Path) -> None:
    """The scenario was checked against the official sizes; the files that are there may be fewer."""

    def few(name: str) -> Dataset:
        whole = load_dataset(name)
        return replace(whole, info=replace(whole.info, rarest_label=20))

    runs = plan([small], [], [0], tmp_path, Shelf(few))
    with pytest.raises(DatasetError, match=r"40 images at EMD 1\.0 can need 24 of one.*has 20"):
        run_all(runs, Shelf(few), Observer(), RunOptions(workers=0))


@pytest.mark.real_data
def test_three_rounds_on_real_images(tmp_path: Path, shelf: Shelf, real_images: Path) -> None:
    scenario = load("paper", ["rounds=3", "training.eval_samples=1000"])
    rounds = pd.read_csv(run_small(scenario, tmp_path, shelf, workers=2, policies=("d-first",)) / "rounds.csv")
    first, last = (rounds[rounds["round"] == n].set_index("service")["accuracy"] for n in (1, 3))
    assert (last > first).all()
    assert last["mnist"] > 0.5  # five times what guessing gives
