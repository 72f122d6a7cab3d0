"""`mahdrl-paper` in a market: plays a trained agent without exploring."""

import numpy as np

from des.observation import Observation, Offer
from learning.mahdrl import agent_files
from learning.mahdrl.agent_files import Reasons
from learning.mahdrl.paper.equations import Networks, serial_selection
from learning.mahdrl.paper.settings import Settings
from learning.policy import Policy, PolicyContext

NAME = "mahdrl-paper"


class MahdrlPaper(Policy):
    """Our reading of the paper's Algorithm 1, trained."""

    summary = "learned: the paper's Algorithm 1, as we read it; plays only the services that it was trained for"

    def __init__(
        self,
        context: PolicyContext,
        *,
        # file of ``flmarket train --policy mahdrl-paper``; if not given, the agent that comes with flmarket, for the
        # scenario ``paper``
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(context)
        settings, networks = agent_files.load(checkpoint, NAME, context.service, Settings)
        self._networks = Networks(settings.hidden, settings.bias)
        self._actor, self._critic = networks["actor"], networks["critic"]

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return agent_files.digest(checkpoint, NAME)

    def act(self, observation: Observation) -> Offer:
        """Return offers to the clients of the highest Q, at the actor's payments (eq. 7)."""
        return self.reasons(observation).offer

    def reasons(self, observation: Observation) -> Reasons:
        state = self._networks.encode(observation)[None, None]
        markup = self._networks.markup(self._actor, state)
        q = self._networks.q(self._critic, state, markup)
        offer = serial_selection(observation, markup[0, 0], q[0, 0])
        return Reasons(offer, np.asarray(q[0, 0], np.float64))
