"""`mahdrl` in a market: plays a trained agent, which remembers the run if it was trained for any market."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arrays import AnyArray, BoolArray
from learning.mahdrl import agent_file
from learning.mahdrl.agent import Brain
from learning.mahdrl.agent_file import Reasons, Trained
from learning.mahdrl.features import Memory, knowledge
from learning.mahdrl.settings import FORMER, Payments, Settings
from learning.policy import Policy, PolicyContext

NAME, SINGLE = "mahdrl", "mahdrl-single"


class Player(Policy):
    """Plays the networks of an agent."""

    def __init__(self, context: PolicyContext, brain: Brain) -> None:
        """Play one agent's networks in a market, of which nothing is remembered yet."""
        super().__init__(context)
        self._brain, self._memory = brain, Memory(known=knowledge(context.curve))

    def act(self, observation: Observation) -> Offer:
        return self._brain.decide(observation, self._memory)

    def reasons(self, observation: Observation) -> Reasons:
        """Return what ``act`` returns, and what it follows from."""
        return self._brain.reasons(observation, self._memory)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self.remember(observation, offer, feedback.won)

    def remember(self, observation: Observation, offer: Offer, won: BoolArray) -> None:
        """Remember which offers of a round won [k], if the agent ``remembers`` at all."""
        if self.remembers:
            self._memory = self._memory.after(observation, offer, won)

    @property
    def remembers(self) -> bool:
        return self._brain.settings.context

    @property
    def draws_lots(self) -> bool:
        """Whether a random draw decides among clients that are worth the same to it."""
        return self._brain.settings.lots

    def state(self) -> dict[str, AnyArray]:
        return {"memory": self._memory.sums}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._memory = replace(self._memory, sums=np.asarray(state["memory"], dtype=np.float64))


class Mahdrl(Player):
    """The learned policy that comes with flmarket, or one that you trained yourself."""

    summary = "learned: one agent for any market, which learns payments, too (MAHDRL, improved)"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        checkpoint: str | None = None,  # file of ``flmarket train``; if not given, the agent that comes with flmarket
        # ``plan`` offers more than the bid where that promises more; ``bid`` never does; if not given, the agent plays
        # as it was trained
        payments: Payments | None = None,
        # whether it sees the learning curve that was fitted to its data set, if it was trained to look at one;
        # without, it plays as if none had been fitted
        curve: bool = True,
    ) -> None:
        if payments not in ("plan", "bid", None):
            raise ValueError(f'payments must be "plan" or "bid", not {payments!r}')
        if curve is not True and curve is not False:
            raise ValueError(f"curve must be true or false, not {curve!r}")
        told = context if curve else replace(context, curve=None)
        super().__init__(told, _loaded(agent_file.load(checkpoint, NAME, context.service), payments))

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return agent_file.digest(checkpoint, NAME)


class MahdrlSingle(Mahdrl):
    """The agent that was trained in the paper's market alone."""

    summary = "learned in the market of `paper` alone, on images; what `mahdrl` was before it could play any market"

    def __init__(self, context: PolicyContext, *, payments: Payments | None = None) -> None:
        super().__init__(context, checkpoint=str(agent_file.shipped(SINGLE)), payments=payments)

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:  # noqa: ARG003 - there is one agent
        return agent_file.digest(None, SINGLE)


def _loaded(found: Trained, payments: Payments | None) -> Brain:
    """Return the networks of the agent that a checkpoint holds for a service."""
    settings: Settings = found.settings(Settings, FORMER)
    found.require_shapes(Brain.shapes(settings))
    if payments is not None:
        settings = replace(settings, payments=payments)
    return Brain(**found.tensors, settings=settings)
