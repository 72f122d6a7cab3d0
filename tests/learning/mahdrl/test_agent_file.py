"""Files of agents: what comes back, which agent decides for a service, and every way in which one is refused."""

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pytest

from fl.arithmetic.streams import stream
from learning.mahdrl import agent_file
from learning.mahdrl.agent import Brain
from learning.mahdrl.agent_file import CheckpointError, load, shipped
from learning.mahdrl.policy import Mahdrl
from learning.mahdrl.settings import Settings
from learning.policy import PolicyOptionsError, create

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([3])}


@pytest.fixture
def agent(tmp_path):
    path = tmp_path / "agent.safetensors"
    brain = Brain.initial(stream(0, "test"))
    agent_file.write(
        path, "agent", brain.tensors(), {"policy": "mahdrl", "agents": None, "settings": asdict(Settings())}
    )
    return path


def describe(path, **changes):
    described = path.with_suffix(".json")
    described.write_text(json.dumps(json.loads(described.read_text()) | changes))


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "deep" / "down.safetensors"
    agent_file.write(path, "training", TENSORS, {"episode": 5})
    tensors, description = agent_file.read(path, "training")
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
    agent_file.write(path, "agent", TENSORS, {})
    path.write_bytes(b"\x80\x04K\x01.")
    describe(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        agent_file.read(path, "agent")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "has version 0, but this flmarket reads version 2; train again"),
        ({"flmarket": "training"}, "does not describe a checkpoint of kind 'agent'"),
        ({"policy": "mahdrl-paper"}, "holds an agent of policy 'mahdrl-paper', not 'mahdrl'"),
        ({"agents": ["x", "y"]}, "has agents for x, y, but none for service 's0'"),
        ({"settings": None}, "has no settings; restore it or train again"),
        (
            {"settings": {"members": "x"}},
            "was trained with invalid settings: members: .* valid integer.*; train it again",
        ),
        ({"settings": {"context": True}}, "holds .*, not the networks of its settings, .*; train it again"),
        (
            {"settings": {"lot": False}},
            r"agent\.json: unknown setting 'lot' of mahdrl; did you mean 'lots'\?; restore it or train again",
        ),
        ({"settings": {"stop": False}}, "was trained with stop = False, which this flmarket cannot play"),
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
    before = agent_file.digest(agent)
    describe(agent, curve=[1, 2, 3])
    assert agent_file.digest(agent) == before
    describe(agent, settings=asdict(Settings(lots=True)))
    assert agent_file.digest(agent) != before


def test_options_are_checked(agent, make_context):
    with pytest.raises(PolicyOptionsError, match='payments must be "plan" or "bid"'):
        create("mahdrl", make_context(), {"checkpoint": str(agent), "payments": "much"})


def test_the_shipped_agent_plays(make_context, make_observation):
    rng = np.random.default_rng(0)
    offer = create("mahdrl", make_context()).act(make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20)))
    assert len(offer.clients) > 0


def described(tmp_path, **changes):
    """The shipped agent in a file whose description says something else."""
    tensors, description = agent_file.read(shipped("mahdrl"), "agent")
    rest = {key: value for key, value in description.items() if key not in {"flmarket", "version", "sha256"}}
    path = tmp_path / "mine.safetensors"
    agent_file.write(path, "agent", tensors, rest | changes)
    return path


def test_one_agent_decides_for_every_service(tmp_path):
    found = load(str(described(tmp_path, agents=None)), "mahdrl", "anything")
    assert (found.agent, found.agents) == (0, 1)


def test_of_several_agents_each_decides_for_the_service_of_its_name(tmp_path):
    path = described(tmp_path, agents=["mnist", "emnist"])
    assert [load(str(path), "mahdrl", name).agent for name in ("mnist", "emnist")] == [0, 1]
    assert load(str(path), "mahdrl", "emnist").agents == 2
    with pytest.raises(CheckpointError) as caught:
        load(str(path), "mahdrl", "digits")
    assert str(caught.value) == f"{path}: has agents for mnist, emnist, but none for service 'digits'"


def test_an_agent_of_another_policy_is_refused(tmp_path):
    path = described(tmp_path, agents=None)
    with pytest.raises(CheckpointError) as caught:
        load(str(path), "mahdrl-paper", "mnist")
    assert str(caught.value) == f"{path}: holds an agent of policy 'mahdrl', not 'mahdrl-paper'"
