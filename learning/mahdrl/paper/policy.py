"""`mahdrl-paper` in a market: plays a trained agent without exploring."""

from pathlib import Path

import numpy as np
import torch

from des.records import Observation, Offer
from learning.checks import require_finite
from learning.mahdrl import checkpoint as checkpoints
from learning.mahdrl.paper.actor_critic import Networks, Weights
from learning.mahdrl.paper.equations import serial_order
from learning.mahdrl.policy import agent_of, shipped
from learning.policy import Policy, PolicyContext
from learning.selection import fill_budget

SHIPPED = "mahdrl-paper"
"""Trained in the paper's market; fits no other number of clients or services."""


class MahdrlPaper(Policy):
    """The paper's Algorithm 1 to the letter, trained."""

    summary = "learned: the paper's Algorithm 1 to the letter; fits only the market it was trained in"

    def __init__(self, context: PolicyContext, *, checkpoint: str | None = None) -> None:
        """Load the agent of one service.

        Args:
            context: of the service.
            checkpoint: file of ``flmarket train --policy mahdrl-paper``; the agent that comes with flmarket, for the
                scenario ``paper``, when not given.

        Raises:
            CheckpointError: the checkpoint can't be used, or was trained in a market of another size.
        """
        super().__init__(context)
        path = Path(checkpoint) if checkpoint else shipped(SHIPPED)
        tensors, description = checkpoints.read(path, "agent")
        index = agent_of(description, path, "mahdrl-paper", context.service)
        settings = checkpoints.settings(path, description)
        try:
            self._networks = Networks(settings["network"], settings["hidden"], context.services, context.clients)
            self._learned_payments = {"actor": True, "bid": False}[settings["payments"]]
        except (KeyError, TypeError) as error:
            raise checkpoints.CheckpointError(f"{path}: was trained with settings that can't be: {error!r}") from error
        checkpoints.require_shapes(path, tensors, self._networks.shapes(len(description["agents"])))
        weights = Weights(torch.from_numpy(tensors["actor"]), torch.from_numpy(tensors["critic"]))
        self._weights = weights.of([index])

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        """Return the SHA-256 of the agent that a new policy would load."""
        return checkpoints.digest(Path(checkpoint) if checkpoint else shipped(SHIPPED))

    def act(self, observation: Observation) -> Offer:
        """Return offers to the clients of the highest Q, at the actor's payments (eq. 7)."""
        require_finite(observation)
        states = torch.from_numpy(self._networks.encode(observation)[None, None])
        with torch.no_grad():
            markup = self._networks.markup(self._weights.actor, states)
            if not self._learned_payments:
                markup = torch.zeros_like(markup)
            q = self._networks.q(self._weights.critic, states, markup)
        payments = observation.own_bids * (1.0 + markup[0, 0].numpy().astype(np.float64))
        order, budget = serial_order(q[0, 0].numpy(), 0.0, None), observation.budget
        return fill_budget(order, payments, budget, stop_at_misfit=True, available=observation.available)
