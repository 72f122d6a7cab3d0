"""`mahdrl-paper` in a market: plays a trained agent without exploring."""

from dataclasses import fields

import numpy as np

from des.records import Observation, Offer
from fl.arrays import Float32Array, FloatArray
from learning.checks import require_finite
from learning.mahdrl import trained
from learning.mahdrl.checkpoint import CheckpointError
from learning.mahdrl.paper.actor_critic import Networks
from learning.mahdrl.paper.equations import serial_selection
from learning.mahdrl.paper.serial import Slot, fill
from learning.mahdrl.paper.settings import Settings
from learning.mahdrl.reasons import Reasons
from learning.policy import Policy, PolicyContext

NAME = "mahdrl-paper"


class MahdrlPaper(Policy):
    """Our reading of the paper's Algorithm 1, trained."""

    summary = "learned: the paper's Algorithm 1, as we read it; plays only the services that it was trained for"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # file of ``flmarket train --policy mahdrl-paper``; if not given, the agent that comes with flmarket, for the
        # scenario ``paper``
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(context)
        found = trained.load(checkpoint, NAME, context.service)
        found.require_settings([setting.name for setting in fields(Settings)])
        settings = found.settings
        try:
            network, payments, hidden, bias = (settings[name] for name in ("network", "payments", "hidden", "bias"))
            self._serial = settings["selection"] == "serial"
            size = (context.services, context.clients)
            self._networks = Networks(network, payments, hidden, *size, bias=bias, serial=self._serial)
        except KeyError as error:
            raise CheckpointError(f"{found.path}: was trained without the setting {error}; train it again") from error
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                f"{found.path}: was trained with invalid settings: {error}; train it again"
            ) from error
        found.require_shapes(self._networks.shapes(found.agents))
        one = slice(found.agent, found.agent + 1)
        self._actor, self._critic = found.tensors["actor"][one], found.tensors["critic"][one]

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return trained.digest(checkpoint, NAME)

    def act(self, observation: Observation) -> Offer:
        """Return offers to the clients of the highest Q, at the actor's payments (eq. 7)."""
        return self.reasons(observation).offer

    def reasons(self, observation: Observation) -> Reasons:
        """Return what ``act`` returns, and what it follows from."""
        require_finite(observation)
        if self._serial:
            slot = Slot(observation, self._networks.encode(observation))
            fill([slot], self._values)
            return Reasons(slot.offer, slot.q)
        markup, q = self._values(self._networks.encode(observation)[None])
        offer = serial_selection(observation, markup[0], q[0])
        return Reasons(offer, np.asarray(q[0], np.float64))

    def _values(self, states: Float32Array) -> tuple[FloatArray, FloatArray]:
        """Return a_c and Q of each client in states [1, S], both [1, C]."""
        seen = states[:, None]
        markup = self._networks.markup(self._actor, seen)
        return markup[:, 0], self._networks.q(self._critic, seen, markup)[:, 0]
