"""Files of a training: its record, the agent's preferences, counted by hand, and TensorBoard."""

import csv
import errno
import json
import os
from contextlib import closing

import numpy as np
import pytest
from typer.testing import CliRunner

from des.observation import Feedback, Observation, Offer, Status
from flmarket.cli.program import app
from flmarket.core.errors import InputError
from learning.mahdrl.preferences import Preferences, fifths
from learning.mahdrl.training import Plan
from learning.mahdrl.training_files import (
    Board,
    GrowingTable,
    Row,
    has_baselines,
    preferences_of,
    record_baselines,
    record_plan,
)
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.train import Training, run

NO_BOARD = "TensorBoard is not installed (pip install 'flmarket[tensorboard]')"


def seen(bids, dqi, offline=()):
    return Observation(
        round=1, rounds=2, service="alpha", services=("alpha",), dqi=np.array(dqi), bids=np.array([bids]), budget=9.0,
        cores=1, accuracy=0.1, target_accuracy=0.9, key=b"", offline=frozenset(offline),
    )  # fmt: skip


def came(*served):
    n = len(served)
    return Feedback(1, 0.2, 1.0, np.array(served, bool), np.zeros(n, bool), np.zeros(n), np.zeros(n), Status.TRAINING)


def test_only_a_full_disk_asks_for_room(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"file/log\.csv: cannot be written: Not a directory$|: File exists$"):
        GrowingTable(tmp_path / "file" / "log.csv", ["episode"])

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with GrowingTable(tmp_path / "log.csv", ["episode"]) as log:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"No space left on device; make room, then continue with --resume$"):
            log.sync()


def test_clients_are_ordered_and_cut_into_fifths_without_those_that_are_offline():
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    everyone = np.ones(6, bool)
    assert fifths(values, np.array([1, 1, 1, 1, 1, 0], bool)).tolist() == [4, 0, 3, 1, 2, 0]
    assert fifths(np.zeros(6), everyone).tolist() == [0, 0, 1, 2, 3, 4]  # of equal ones the first come first
    assert fifths(values, np.zeros(6, bool)).tolist() == [0] * 6


def test_preferences_are_shares_of_all_offers():
    found = Preferences()
    observation = seen([1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 0.4, 0.3, 0.2, 0.1])
    found.add(observation, Offer(np.array([4, 3]), np.array([5.5, 4.0])), came(True, False))
    found.add(observation, Offer(np.array([4]), np.array([5.0])), came(True))
    found.add(observation, Offer.none(), came())
    [row] = found.rows(25)
    assert (row["episode"], row["service"], row["offers"]) == (25, "alpha", 1.0)
    assert row["served"] == pytest.approx(2 / 3)
    assert row["markup"] == pytest.approx(14.5 / 14 - 1)
    assert [row[f"bid_{part}"] for part in range(1, 6)] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3])
    assert [row[f"dqi_{part}"] for part in range(1, 6)] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])


def test_without_offers_there_are_no_shares():
    found = Preferences()
    found.add(seen([1.0], [0.5]), Offer.none(), came())
    [row] = found.rows(1)
    assert row["offers"] == 0.0
    assert {row["served"], row["markup"], row["bid_1"], row["dqi_5"]} == {""}


def test_a_resumed_record_drops_what_is_played_again(tmp_path):
    found, out = Preferences(), tmp_path / "agent.safetensors"
    found.add(seen([1.0], [0.5]), Offer(np.array([0]), np.array([1.0])), came(True))
    file = tmp_path / "agent.training" / "record" / "preferences.csv"
    with preferences_of(out, 0) as table:
        table.write(found.rows(25))
        once = file.read_bytes()
        table.write(found.rows(50))
    twice = file.read_bytes()
    with preferences_of(out, 25) as again:  # killed after episode 50 was evaluated, before its state was saved
        assert file.read_bytes() == once
        again.write(found.rows(50))
    assert file.read_bytes() == twice


@pytest.mark.parametrize("torn", ["", "2", "2,", "2,b\n10,c\n"])
def test_a_table_is_continued_after_the_last_row_that_is_kept(tmp_path, torn):
    """Whatever a kill left of the row after it."""
    path = tmp_path / "table.csv"
    path.write_text(f"episode,word\n1,a\n1,b\n{torn}")
    with GrowingTable(path, ("episode", "word"), 1) as table:
        table.write([{"episode": 2, "word": "z"}])
    assert path.read_text() == "episode,word\n1,a\n1,b\n2,z\n"


def test_plan_and_baselines(tmp_path):
    out, folder = tmp_path / "new" / "agent.safetensors", tmp_path / "new" / "agent.training" / "record"
    with preferences_of(out, 0):
        assert not has_baselines(out)
        record_plan(out, {"plan": {"episodes": 4}})
        record_baselines(out, {"hqfa": Row(0, "evaluate", 0.0, 0.5, 0.25, 0.0, 0.125, {})})
        assert has_baselines(out)
        assert json.loads((folder / "plan.json").read_text()) == {"plan": {"episodes": 4}}
        assert (folder / "baselines.csv").read_text() == "policy,reward,auc,reached,markup\nhqfa,0.5,0.25,0,0.125\n"


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
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=NO_BOARD)
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
    pytest.importorskip("tensorboard", reason=NO_BOARD)
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(InputError, match=r"--tensorboard: .*file: cannot be written"):
        Board(taken)
