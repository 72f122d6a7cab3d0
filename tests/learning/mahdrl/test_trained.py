"""Agents in files: which of them decides for a service, and which files are refused."""

import pytest

from learning.mahdrl import checkpoint
from learning.mahdrl.checkpoint import CheckpointError
from learning.mahdrl.trained import load, shipped


def described(tmp_path, **changes):
    """The shipped agent in a file whose description says something else."""
    tensors, description = checkpoint.read(shipped("mahdrl"), "agent")
    rest = {key: value for key, value in description.items() if key not in {"flmarket", "version", "sha256"}}
    path = tmp_path / "mine.safetensors"
    checkpoint.write(path, "agent", tensors, rest | changes)
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


@pytest.mark.parametrize("agents", ["mnist", 2, {"mnist": 0}, ["mnist", 1], [1, 2]])
def test_agents_that_are_no_names_are_refused(tmp_path, agents):
    path = described(tmp_path, agents=agents)
    with pytest.raises(CheckpointError) as caught:
        load(str(path), "mahdrl", "mnist")
    assert str(caught.value) == f"{path}: its agents must be a list of names of services, not {agents!r}"


def test_an_agent_of_another_policy_is_refused(tmp_path):
    path = described(tmp_path, agents=None)
    with pytest.raises(CheckpointError) as caught:
        load(str(path), "mahdrl-paper", "mnist")
    assert str(caught.value) == f"{path}: holds an agent of policy 'mahdrl', not 'mahdrl-paper'"
