"""Trained agents on disk: those that come with flmarket, and your own."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fl.names import did_you_mean
from learning.mahdrl import checkpoint as checkpoints
from learning.mahdrl.checkpoint import CheckpointError


@dataclass(frozen=True, slots=True)
class Trained:
    """A checkpoint that holds the agent of a service."""

    path: Path  # file of the tensors
    tensors: Mapping[str, Any]  # arrays by name; the first axis of each counts the agents
    description: Mapping[str, Any]  # the JSON file beside it
    agent: int  # index of the agent that decides for the service
    agents: int  # how many agents the checkpoint holds

    @property
    def settings(self) -> Mapping[str, Any]:
        """The hyper-parameters that the agent was trained with; a CheckpointError if the description has none."""
        return checkpoints.settings(self.path, self.description)

    def require_settings(self, known: Collection[str]) -> None:
        """Refuse unknown settings, which might change how the agent plays."""
        if unknown := sorted(self.settings.keys() - known):
            raise CheckpointError(
                f"{self.path.with_suffix(checkpoints.DESCRIPTION)}: unknown setting {unknown[0]!r} of "
                f"{self.description['policy']}{did_you_mean(unknown[0], known)}; restore it or train again"
            )

    def require_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse tensors that do not fit the policy's networks; see ``checkpoint.require_shapes``."""
        checkpoints.require_shapes(self.path, self.tensors, shapes)


def shipped(policy: str) -> Path:
    """Return where the agent that comes with flmarket for a learned policy is, whether or not there is one.

    Its provenance is in the JSON file beside it.
    """
    return Path(str(files("learning") / "agents" / f"{policy}{checkpoints.TENSORS}"))


def load(
    checkpoint: str | None,  # file of ``flmarket train``; if None, the agent that comes with flmarket
    policy: str,  # name of the policy that is to play it
    service: str,  # name of the service
) -> Trained:
    """Read the agent that decides for a service."""
    path = _path(checkpoint, policy)
    tensors, description = checkpoints.read(path, "agent")
    if description.get("policy") != policy:
        raise CheckpointError(f"{path}: holds an agent of policy {description.get('policy')!r}, not {policy!r}")
    names = description.get("agents")
    if names is None:  # one agent for all services
        return Trained(path, tensors, description, agent=0, agents=1)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(f"{path}: its agents must be a list of names of services, not {names!r}")
    if service not in names:
        raise CheckpointError(f"{path}: has agents for {', '.join(names)}, but none for service {service!r}")
    return Trained(path, tensors, description, agent=names.index(service), agents=len(names))


def digest(checkpoint: str | None, policy: str) -> str:
    """Return the SHA-256 of what ``load`` would read, part of the hash of runs that use it."""
    return checkpoints.digest(_path(checkpoint, policy))


def _path(checkpoint: str | None, policy: str) -> Path:
    return Path(checkpoint) if checkpoint else shipped(policy)
