"""`mahdrl` in a market: plays a trained agent. NumPy only."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from des.records import Observation, Offer
from learning.mahdrl import checkpoint as checkpoints
from learning.mahdrl.brain import Brain, Design, Payments
from learning.policy import Policy, PolicyContext

SHIPPED = "mahdrl"
"""The agent that comes with flmarket: ``learning/agents/mahdrl.safetensors``, its provenance in the JSON beside it."""


def shipped(name: str) -> Path:
    """Return the file of an agent that comes with flmarket, there or not."""
    return Path(str(files("learning") / "agents" / f"{name}{checkpoints.TENSORS}"))


def agent_of(description: Mapping[str, Any], path: Path, policy: str, service: str) -> int:
    """Return the index of the agent that decides for a service.

    Raises:
        CheckpointError: the checkpoint is of another policy, or has no agent for this service.
    """
    if description.get("policy") != policy:
        raise checkpoints.CheckpointError(
            f"{path}: holds an agent of policy {description.get('policy')!r}, not {policy!r}"
        )
    names = description.get("agents")
    if names is None:  # one agent for all services
        return 0
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise checkpoints.CheckpointError(f"{path}: its agents must be a list of services' names, not {names!r}")
    if service not in names:
        raise checkpoints.CheckpointError(
            f"{path}: has agents for {', '.join(names)}, and none for service {service!r}"
        )
    return int(names.index(service))


class Mahdrl(Policy):
    """The learned policy that comes with flmarket, or one of your own training."""

    summary = "learned: one network for all clients and services, learned payments (MAHDRL, improved)"

    def __init__(
        self, context: PolicyContext, *, checkpoint: str | None = None, payments: Payments | None = None
    ) -> None:
        """Load the agent.

        Args:
            context: of the service.
            checkpoint: file of ``flmarket train``; the agent that comes with flmarket when not given.
            payments: ``plan`` offers more than the bid where that promises more; ``bid`` never does; as the agent was
                trained when not given.

        Raises:
            CheckpointError: the checkpoint can't be used.
        """
        super().__init__(context)
        if payments not in ("plan", "bid", None):
            raise ValueError(f'payments must be "plan" or "bid", not {payments!r}')
        path = Path(checkpoint) if checkpoint else shipped(SHIPPED)
        tensors, description = checkpoints.read(path, "agent")
        index = agent_of(description, path, "mahdrl", context.service)
        agents = len(description.get("agents") or [""])
        checkpoints.require_shapes(path, tensors, Brain.shapes(agents))
        try:
            design = Design.of(checkpoints.settings(path, description))
        except ValueError as error:
            raise checkpoints.CheckpointError(f"{path}: was trained with settings that can't be: {error}") from error
        if payments is not None:
            design = replace(design, payments=payments)
        self._brain = Brain(**{name: tensors[name] for name in Brain.shapes(agents)}, design=design).agent(index)

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        """Return the SHA-256 of the agent that a new policy would load."""
        return checkpoints.digest(Path(checkpoint) if checkpoint else shipped(SHIPPED))

    def act(self, observation: Observation) -> Offer:
        """Return the offers that the agent's critic thinks best."""
        return self._brain.decide(observation)
