"""`--tensorboard`: TensorBoard itself reads back what the training log says."""

import csv
from contextlib import closing

import pytest
from typer.testing import CliRunner

from fl.errors import InputError
from learning.mahdrl.board import Board
from learning.mahdrl.plan import Plan
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.train import run
from scenarios.training import Training
from tui.program import app

accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="TensorBoard is not installed (pip install 'flmarket[tensorboard]')",
)


def train(out, *extra):
    words = [
        "train",
        "paper",
        "--backend",
        "surrogate",
        "--set",
        "rounds=4",
        "--evaluate-every",
        "2",
        "--out",
        str(out),
    ]
    result = CliRunner().invoke(app, [*words, "-q", *extra])
    assert result.exit_code == 0, result.output


def curve(folder, tag):
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {event.step: event.value for event in events.Scalars(tag)}


def logged(out, phase, column):
    with out.with_suffix(".csv").open() as file:
        return {int(row["episode"]): float(row[column]) for row in csv.DictReader(file) if row["phase"] == phase}


def test_tensorboard_shows_the_training_log(tmp_path):
    out, board = tmp_path / "agent.safetensors", tmp_path / "board"
    train(out, "--episodes", "4", "--tensorboard", str(board))
    for phase, column in (("train", "auc"), ("train", "markup"), ("evaluate", "reward"), ("evaluate", "auc")):
        assert curve(board / "agent", f"{phase}/{column}") == pytest.approx(logged(out, phase, column), abs=1e-5)
    assert curve(board / "agent", "train/critic_loss").keys() == {2, 3, 4}, "the first episode has no baseline yet"


def test_a_resumed_training_goes_on_in_the_same_curves(tmp_path):
    out, folder = tmp_path / "agent.safetensors", tmp_path / "board"
    scenario = load("paper", ["training.backend=surrogate", "rounds=4"])
    plan = Plan(episodes=6, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    training = Training((scenario,), "mahdrl", {}, plan)
    board = Board(folder)

    def stopped(row):
        board(row)
        if row.episode == 5:  # after the state of episode 4: TensorBoard has an episode that is played again
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), closing(board):
        run(training, 0, out, Shelf(), report=stopped)
    with closing(Board(folder)) as resumed:
        run(training, 0, out, Shelf(), resume=True, report=resumed)
    assert curve(folder, "train/auc") == pytest.approx(logged(out, "train", "auc"), abs=1e-5)


def test_a_folder_that_cannot_be_written(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(InputError, match=r"--tensorboard: .*file: cannot be written"):
        Board(taken)
