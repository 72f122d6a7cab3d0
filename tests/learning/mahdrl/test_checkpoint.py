"""Checkpoints: what comes back, and every way in which one is refused."""

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pytest

from fl.streams import stream
from learning.mahdrl import checkpoint
from learning.mahdrl.brain import Brain
from learning.mahdrl.checkpoint import CheckpointError
from learning.mahdrl.policy import Mahdrl
from learning.mahdrl.settings import Settings
from learning.policy import PolicyOptionsError, create

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([3])}


@pytest.fixture
def agent(tmp_path):
    path = tmp_path / "agent.safetensors"
    brain = Brain.initial(stream(0, "test"), 1)
    checkpoint.write(
        path, "agent", brain.tensors(), {"policy": "mahdrl", "agents": None, "settings": asdict(Settings())}
    )
    return path


def describe(path, **changes):
    described = path.with_suffix(".json")
    described.write_text(json.dumps(json.loads(described.read_text()) | changes))


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "deep" / "down.safetensors"
    checkpoint.write(path, "training", TENSORS, {"episode": 5})
    tensors, description = checkpoint.read(path, "training")
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


def test_a_pickle_is_refused(tmp_path, make_context):
    path = tmp_path / "agent.safetensors"
    checkpoint.write(path, "agent", TENSORS, {})
    path.write_bytes(b"\x80\x04K\x01.")
    describe(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        checkpoint.read(path, "agent")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "has version 0, but this flmarket reads version 2; train again"),
        ({"flmarket": "training"}, "does not describe a checkpoint of kind 'agent'"),
        ({"policy": "mahdrl-paper"}, "holds an agent of policy 'mahdrl-paper', not 'mahdrl'"),
        ({"agents": ["x", "y"]}, "has agents for x, y, but none for service 's0'"),
        ({"agents": ["s0", "y"]}, r"tensor 'quality' has shape \(1, "),
        ({"agents": {"s0": 0}}, r"its agents must be a list of names of services, not \{'s0': 0\}"),
        ({"settings": None}, "has no settings; restore it or train again"),
        (
            {"settings": {"payments": "plan"}},
            "invalid settings: standardise must be true or false, not None; train it again",
        ),
        ({"settings": asdict(Settings()) | {"members": True}}, "members must be a positive integer, not True"),
        ({"settings": asdict(Settings()) | {"stop": 1}}, "stop must be true or false, not 1; train it again"),
        ({"settings": asdict(Settings()) | {"context": 0.0}}, "context must be true or false, not 0.0"),
        ({"settings": asdict(Settings()) | {"curve": True}}, "curve is part of what an agent sees with context; train"),
        (
            {"settings": asdict(Settings()) | {"stopp": False}},
            r"agent\.json: unknown setting 'stopp' of mahdrl; did you mean 'stop'\?; restore it or train again",
        ),
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


def test_numbers_that_are_none_are_refused(tmp_path, make_context):
    path = tmp_path / "agent.safetensors"
    tensors = {name: np.full(size, np.nan, np.float32) for name, size in Brain.shapes(1).items()}
    checkpoint.write(path, "agent", tensors, {"policy": "mahdrl", "agents": None, "settings": asdict(Settings())})
    with pytest.raises(CheckpointError, match="holds values that are not finite"):
        Mahdrl(make_context(), checkpoint=str(path))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3"])
def test_numbers_that_numpy_has_no_type_for_are_refused(agent, kind):
    header = json.dumps({"quality": {"dtype": kind, "shape": [0], "data_offsets": [0, 0]}}).encode()
    agent.write_bytes(len(header).to_bytes(8, "little") + header)
    describe(agent, sha256=hashlib.sha256(agent.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match=f"holds numbers of type {kind}, which no training writes; restore it or"):
        checkpoint.read(agent, "agent")


def test_a_tensor_that_nobody_would_look_at_is_refused(tmp_path, make_context):
    path, tensors = tmp_path / "agent.safetensors", Brain.initial(stream(0, "test"), 1).tensors()
    about = {"policy": "mahdrl", "agents": None, "settings": asdict(Settings())}
    checkpoint.write(path, "agent", tensors | {"qualitY": tensors["quality"]}, about)
    with pytest.raises(CheckpointError, match="tensor 'qualitY' is of no network; did you mean 'quality'"):
        Mahdrl(make_context(), checkpoint=str(path))


def test_double_precision_is_refused(tmp_path, make_context):
    path = tmp_path / "agent.safetensors"
    tensors = {name: np.zeros(size) for name, size in Brain.shapes(1).items()}
    checkpoint.write(path, "agent", tensors, {"policy": "mahdrl", "agents": None, "settings": asdict(Settings())})
    with pytest.raises(CheckpointError, match="tensor 'quality' holds float64, not float32"):
        Mahdrl(make_context(), checkpoint=str(path))


def test_the_digest_of_an_agent_covers_how_it_plays(agent):
    before = checkpoint.digest(agent)
    describe(agent, curve=[1, 2, 3])
    assert checkpoint.digest(agent) == before
    describe(agent, settings=asdict(Settings(stop=False)))
    assert checkpoint.digest(agent) != before


def test_options_are_checked(agent, make_context):
    with pytest.raises(PolicyOptionsError, match='payments must be "plan" or "bid"'):
        create("mahdrl", make_context(), {"checkpoint": str(agent), "payments": "much"})


def test_the_shipped_agent_plays(make_context, make_observation):
    rng = np.random.default_rng(0)
    offer = create("mahdrl", make_context()).act(make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20)))
    assert len(offer.clients) > 0
