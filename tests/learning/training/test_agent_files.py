"""Files of agents and states of trainings: what comes back, and what is refused."""

import hashlib
import json
import os
from dataclasses import asdict

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save

from fl.arithmetic.streams import stream
from learning.mahdrl.agent import Brain, Mahdrl, _load_brain, _shapes
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.training import agent_files
from learning.training.agent_files import CheckpointError, load

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
        _load_brain(str(agent), "alpha", None)
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
