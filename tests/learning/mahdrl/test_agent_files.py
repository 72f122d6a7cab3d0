"""Files of agents and of trainings: what comes back, what is refused, the growing log, the record, and TensorBoard."""

import csv
import errno
import hashlib
import json
import os
from contextlib import closing
from dataclasses import asdict

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save

from fl.arithmetic.streams import stream
from flmarket.core.errors import InputError
from learning.mahdrl import agent_files
from learning.mahdrl.agent import Brain, Mahdrl, _loaded, _shapes
from learning.mahdrl.agent_files import Board, CheckpointError, GrowingTable, Row, load
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.training import Plan
from scenarios.build import Shelf
from scenarios.loader import load as load_scenario
from scenarios.train import AgentTraining, run

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([3])}
NO_BOARD = "TensorBoard is not installed (pip install 'flmarket[tensorboard]')"


@pytest.fixture
def agent(tmp_path):
    path = tmp_path / "agent.safetensors"
    description = {"policy": "mahdrl", "agents": None, "settings": asdict(MahdrlSettings())}
    agent_files.write(path, "agent", Brain.initial(stream(0, "test")).tensors(), description)
    return path


def describe(path, **changes):
    described = path.with_suffix(".json")
    described.write_text(json.dumps(json.loads(described.read_text()) | changes))


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "deep" / "down.safetensors"
    agent_files.write(path, "training", TENSORS, {"episode": 5})
    tensors, description = agent_files.read(path, "training")
    for name, values in TENSORS.items():
        np.testing.assert_array_equal(tensors[name], values)
        assert tensors[name].dtype == values.dtype
    assert description["episode"] == 5
    assert description["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:], lambda b: b""])
def test_a_damaged_file_is_refused(agent, make_context, damage):
    agent.write_bytes(damage(agent.read_bytes()))
    with pytest.raises(
        CheckpointError, match=r"checksum mismatch: agent\.json describes another file .* restore both or train again"
    ):
        Mahdrl(make_context(), checkpoint=str(agent))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "has version 0, but this flmarket reads version 2; train again"),
        ({"flmarket": "training"}, "does not describe a checkpoint of kind 'agent'"),
        ({"policy": "mahdrl-paper"}, "holds an agent of policy 'mahdrl-paper', not 'mahdrl'"),
        ({"agents": ["x", "y"]}, "has agents for x, y, but none for service 's0'"),
        ({"settings": None}, "settings: Input should be a dictionary .*; restore it or train again"),
        ({"settings": {"members": "x"}}, "settings.members: .* valid integer.*; restore it or train again"),
    ],
)
def test_what_does_not_fit_is_refused(agent, make_context, changes, message):
    describe(agent, **changes)
    with pytest.raises(CheckpointError, match=message):
        Mahdrl(make_context(), checkpoint=str(agent))


def test_a_missing_half_is_refused(agent, make_context):
    agent.with_suffix(".json").write_text("{")
    with pytest.raises(CheckpointError, match="is not valid JSON"):
        Mahdrl(make_context(), checkpoint=str(agent))
    agent.with_suffix(".json").unlink()
    with pytest.raises(
        CheckpointError, match="cannot be read: No such file or directory; train one with flmarket train"
    ):
        Mahdrl(make_context(), checkpoint=str(agent))


def test_the_digest_of_an_agent_covers_how_it_plays(agent):
    before = agent_files.digest(agent)
    describe(agent, curve=[1, 2, 3])
    assert agent_files.digest(agent) == before
    describe(agent, settings=asdict(MahdrlSettings(lots=True)))
    assert agent_files.digest(agent) != before


def test_of_several_agents_each_decides_for_the_service_of_its_name(tmp_path):
    path = tmp_path / "agent.safetensors"
    description = {"policy": "mahdrl", "agents": ["mnist", "emnist"], "settings": {"lots": True}}
    agent_files.write(path, "agent", {"a": np.array([[1.0], [2.0]], np.float32)}, description)
    for name, value in (("mnist", 1.0), ("emnist", 2.0)):
        settings, networks = load(str(path), "mahdrl", name, MahdrlSettings, lambda _: {"a": (1, 1)})
        assert settings == MahdrlSettings(lots=True)
        assert networks["a"].tolist() == [[value]]


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
    assert not agent_files.has_baselines(out)
    agent_files.record_plan(out, {"plan": {"episodes": 4}})
    agent_files.record_baselines(out, {"hqfa": Row(0, "evaluate", 0.0, 0.5, 0.25, 0.0, 0.125, {})})
    assert agent_files.has_baselines(out)
    assert json.loads((folder / "plan.json").read_text()) == {"plan": {"episodes": 4}}
    assert (folder / "baselines.csv").read_text() == "policy,reward,auc,reached,markup\nhqfa,0.5,0.25,0,0.125\n"


def test_tensorboard_shows_the_training_log_also_of_a_resumed_training(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=NO_BOARD)
    out, folder = tmp_path / "agent.safetensors", tmp_path / "board"
    scenario = load_scenario("paper", ["training.backend=surrogate", "rounds=4"])
    plan = Plan(episodes=6, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    training = AgentTraining((scenario,), "mahdrl", {}, plan)
    board = Board(folder)

    def stopped(row):
        board(row)
        if row.episode == 5:  # after the state of episode 4: TensorBoard has an episode that is played again
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), closing(board):
        run(training, 0, out, Shelf(), report=stopped)
    with closing(Board(folder)) as resumed:
        run(training, 0, out, Shelf(), resume=True, report=resumed)
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    logged = list(csv.DictReader(out.with_suffix(".csv").read_text().splitlines()))
    for tag in ("train/auc", "train/markup", "train/critic_loss", "evaluate/reward", "evaluate/auc"):
        phase, column = tag.split("/")
        expected = {int(row["episode"]): row[column] for row in logged if row["phase"] == phase and row[column]}
        shown = {event.step: event.value for event in events.Scalars(tag)}
        assert shown == pytest.approx({episode: float(value) for episode, value in expected.items()}, abs=1e-5)


def test_a_board_that_cannot_be_written(tmp_path):
    pytest.importorskip("tensorboard", reason=NO_BOARD)
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(InputError, match=r"file: cannot be written"):
        Board(taken)


def test_only_a_full_disk_asks_for_room(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"file/log\.csv: cannot be written: Not a directory$|: File exists$"):
        GrowingTable(tmp_path / "file" / "log.csv", ["episode"])

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with GrowingTable(tmp_path / "log.csv", ["episode"]) as log:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError, match=r"No space left on device; make room, then continue with the option resume$"
        ):
            log.sync()


def forge(path, change_arrays=lambda arrays: arrays, **changes):
    """Change an agent's arrays or description, and make the digest fit."""
    arrays, described = load_arrays(path.read_bytes()), json.loads(path.with_suffix(".json").read_text())
    content = change_arrays(arrays)
    content = content if isinstance(content, bytes) else save(content)
    path.write_bytes(content)
    described |= {"sha256": hashlib.sha256(content).hexdigest(), **changes}
    path.with_suffix(".json").write_text(json.dumps({key: it for key, it in described.items() if it is not ...}))


@pytest.mark.parametrize(
    ("arrays", "changes"),
    [
        (lambda it: b"no arrays", {}),
        (lambda it: b"\xff" * 64, {}),
        (lambda it: {name: values for name, values in it.items() if name != "win"}, {}),
        (lambda it: {**it, "more": it["win"]}, {}),
        (lambda it: {**it, "win": it["win"][:, :-1]}, {}),
        (lambda it: {**it, "quality": it["quality"].astype(np.float64)}, {}),
        (lambda it: {**it, "count": np.zeros((), np.float32)}, {}),
        (lambda it: it, {"settings": ...}),
        (lambda it: it, {"settings": None}),
        (lambda it: it, {"agents": 3}),
        (lambda it: it, {"agents": {"alpha": 0}}),
        (lambda it: {name: np.zeros((), np.float32) for name in it}, {"agents": ["alpha"]}),
        (lambda it: it, {"policy": ["mahdrl"]}),
        (lambda it: it, {"version": {}}),
    ],
)
def test_an_agent_whose_digest_is_right_and_that_is_none_is_named(agent, arrays, changes):
    forge(agent, arrays, **changes)
    with pytest.raises(CheckpointError) as error:
        _loaded(str(agent), "alpha", None)
    assert str(agent.with_suffix("")) in str(error.value)


@pytest.mark.parametrize("name", ["agent.safetensors", "agent.json"])
def test_an_agent_is_a_regular_file(agent, name):
    (agent.parent / name).unlink()
    os.mkfifo(agent.parent / name)
    with pytest.raises(CheckpointError, match=f"{name}: cannot be read: it is not a regular file"):
        load(agent, "mahdrl", "alpha", MahdrlSettings, _shapes)
    (agent.parent / name).unlink()
    (agent.parent / name).symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match=f"{name}: cannot be read: it is not a regular file"):
        load(agent, "mahdrl", "alpha", MahdrlSettings, _shapes)


def test_any_flipped_bit_of_a_training_s_state_is_found(tmp_path):
    out, generator = tmp_path / "agent.safetensors", stream(0, "flips")
    agent_files.write_state(out, TENSORS, {"plan": {"episodes": 3, "gamma": 0.9}}, 2, [{"episode": 1, "reward": 0.5}])
    [state] = (tmp_path / "agent.training").glob("*.safetensors")
    assert agent_files.read(state, agent_files.TRAINING)[1]["episode"] == 2
    for path in (state, state.with_suffix(".json")):
        content = path.read_bytes()
        for at in [*generator.integers(len(content), size=150)]:
            flipped = bytes([*content[:at], content[at] ^ 1 << int(generator.integers(8)), *content[at + 1 :]])
            path.write_bytes(flipped)
            if path == state or json.loads(content) != read_or_none(flipped):
                with pytest.raises(CheckpointError):
                    agent_files.read(state, agent_files.TRAINING)
        path.write_bytes(content)


def read_or_none(content):
    try:
        return json.loads(content)
    except ValueError:
        return None
