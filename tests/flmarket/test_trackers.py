"""Trackers of experiments: told every round of every run, whatever plays it, and harmful to none."""

import csv
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import flmarket
from flmarket.core.errors import InputError
from flmarket.trackers import TrainingBoard
from learning.training.loop import Plan
from learning.training.records import Row
from scenarios.build import Shelf
from scenarios.train import AgentTraining, run

NO_BOARD = "TensorBoard is not installed (pip install 'flmarket[tensorboard]')"


@pytest.fixture
def scenario() -> flmarket.Scenario:
    return flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 4})


class Notebook(flmarket.Tracker):
    def __init__(self) -> None:
        self.told: dict[str, list[tuple[int, Mapping[str, float]]]] = {}
        self.ended: dict[str, Exception | None] = {}

    def begin(self, run: Any) -> None:
        self.told[run.label] = []

    def round(self, run: Any, number: int, values: Mapping[str, float]) -> None:
        self.told[run.label].append((number, values))

    def end(self, run: Any, error: Exception | None) -> None:
        self.ended[run.label] = error


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tracker_is_told_the_numbers_of_all_rounds(jobs: int, scenario: flmarket.Scenario, tmp_path: Path) -> None:
    mine = Notebook()
    options = {"jobs": jobs, "out": tmp_path, "progress": False, "trackers": [mine]}
    results = flmarket.run(scenario, "hqfa", 2, **options)  # type: ignore[arg-type]
    labels = [f"quickstart (hqfa) seed {seed}" for seed in (0, 1)]
    assert mine.ended == dict.fromkeys(labels)
    for seed, label in enumerate(labels):
        rounds = results.rounds[results.rounds["seed"] == seed].set_index(["round", "service"])
        assert [number for number, _ in mine.told[label]] == [1, 2, 3, 4]
        for number, values in mine.told[label]:
            for column in ("accuracy", "spent", "served", "mean_payment"):
                found = {name: values.get(f"{name}/{column}") for name in ("digits", "strokes", "scribbles")}
                logged = rounds.loc[number, column]
                assert found == {name: None if pd.isna(value) else value for name, value in logged.items()}
    again = Notebook()
    flmarket.run(scenario, "hqfa", 2, **(options | {"trackers": [again]}))  # type: ignore[arg-type]
    assert again.told == {}  # the runs are complete


@pytest.mark.parametrize(
    ("raised", "seen", "told"),
    [
        (ZeroDivisionError("on purpose"), flmarket.BatchFailed, "on purpose"),
        (KeyboardInterrupt(), KeyboardInterrupt, "interrupted"),
    ],
)
def test_a_run_that_fails_or_is_interrupted_ends_with_an_error(
    raised: BaseException, seen: type[BaseException], told: str, scenario: flmarket.Scenario, tmp_path: Path
) -> None:
    class Failing(flmarket.Policy):
        def act(self, observation: flmarket.Observation) -> flmarket.Offer:
            raise raised

    mine = Notebook()
    with pytest.raises(seen):
        flmarket.run(scenario, Failing, out=tmp_path, progress=False, trackers=[mine])
    [error] = mine.ended.values()
    assert told in str(error)


def test_a_tracker_that_raises_harms_no_run(
    scenario: flmarket.Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(flmarket.Tracker):
        def round(self, run: Any, number: int, values: Mapping[str, float]) -> None:
            raise OSError("no network")

    mine = Notebook()
    results = flmarket.run(scenario, "hqfa", 2, out=tmp_path, trackers=[Broken(), mine])
    assert len(results) == len(mine.ended) == 2
    assert capsys.readouterr().err.count("note: Broken is told nothing more: OSError: no network") == 1


def test_tensorboard_has_a_curve_for_each_number(scenario: flmarket.Scenario, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=NO_BOARD)
    for fresh in (False, True):  # a run that is started over takes the place of what is there
        tracker = flmarket.TensorBoard(tmp_path / "curves")
        results = flmarket.run(scenario, "hqfa", out=tmp_path / "runs", progress=False, trackers=[tracker], fresh=fresh)
    [path] = results.paths
    curves = tmp_path / "curves" / path.parts[-3] / f"{path.parts[-2]}-{path.parts[-1]}"
    read = accumulator.EventAccumulator(str(curves)).Reload()
    points = [(it.step, round(it.value, 6)) for it in read.Scalars("digits/accuracy")]
    rounds = results.rounds[results.rounds["service"] == "digits"]
    assert points == list(zip(rounds["round"], rounds["accuracy"], strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_has_a_run_for_each_run(scenario: flmarket.Scenario, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed (pip install 'flmarket[mlflow]')")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    flmarket.run(scenario, "hqfa", 2, out=tmp_path, progress=False, trackers=[flmarket.MLflow("market", uri)])
    client = mlflow.MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name("market").experiment_id])
    assert sorted(it.data.params["seed"] for it in found) == ["0", "1"]
    assert {it.info.status for it in found} == {"FINISHED"}
    assert [it.step for it in client.get_metric_history(found[0].info.run_id, "digits/accuracy")] == [1, 2, 3, 4]


@pytest.mark.slow
def test_weights_and_biases_has_a_run_for_each_run(scenario: flmarket.Scenario, tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed (pip install 'flmarket[wandb]')")
    tracker = flmarket.WandB("market", mode="offline", dir=str(tmp_path))
    flmarket.run(scenario, "hqfa", 2, out=tmp_path, progress=False, trackers=[tracker])
    wandb.teardown()  # its service, a process
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 2


def test_tensorboard_shows_the_training_log_also_of_a_resumed_training(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=NO_BOARD)
    out, folder = tmp_path / "agent.safetensors", tmp_path / "board"
    scenario = flmarket.load("paper", {"training.backend": "surrogate", "rounds": 4})
    plan = Plan(episodes=6, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    training = AgentTraining((scenario,), "mahdrl", {}, plan)
    board = TrainingBoard(folder)

    def stopped(row: Row) -> None:
        board(row)
        if row.episode == 5:  # after the state of episode 4: TensorBoard has an episode that is played again
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), closing(board):
        run(training, 0, out, Shelf(), report=stopped)
    with closing(TrainingBoard(folder)) as resumed:
        run(training, 0, out, Shelf(), resume=True, report=resumed)
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    logged = list(csv.DictReader(out.with_suffix(".csv").read_text().splitlines()))
    for tag in ("train/auc", "train/markup", "train/critic_loss", "evaluate/reward", "evaluate/auc"):
        phase, column = tag.split("/")
        expected = {int(row["episode"]): row[column] for row in logged if row["phase"] == phase and row[column]}
        shown = {event.step: event.value for event in events.Scalars(tag)}
        assert shown == pytest.approx({episode: float(value) for episode, value in expected.items()}, abs=1e-5)


def test_a_board_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason=NO_BOARD)
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(InputError, match=r"file: cannot be written"):
        TrainingBoard(taken)
