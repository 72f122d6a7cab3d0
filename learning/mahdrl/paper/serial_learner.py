"""Algorithm 1 with the other reading of serial selection: what lines 8 to 11 and eq. (11) are in its sub-MDP."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from des.records import Feedback, Observation, Offer
from fl.arrays import Float32Array
from fl.streams import stream
from learning.checks import require_finite
from learning.mahdrl.paper.algorithm import Learner
from learning.mahdrl.paper.equations import Batch
from learning.mahdrl.paper.serial import Slot, fill, targets


class SerialLearner(Learner):
    """The agents of all learning services, each of which picks one client at a time. See ``serial``."""

    more_fields: ClassVar[Mapping[str, tuple[int, ...]]] = {"discount": ()}

    _slots: Mapping[str, Slot]

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: lines 8 and 9, once for each pick; xi is the same for all picks of a slot."""
        if not observations:
            return {}
        for observation in observations.values():
            require_finite(observation)
        agents = [self.services.index(name) for name in observations]
        weights, xi = self.weights.of(agents), None
        if epsilon > 0:
            self._step_noise(next(iter(observations.values())).round)
            if self.settings.payments == "actor":
                xi = self._xi(agents, epsilon)

        def values(seen: Float32Array) -> tuple[Any, Any]:
            states = torch.from_numpy(seen)[:, None]
            markup = self.networks.markup(weights.actor, states)
            if xi is not None:
                markup = (markup + xi).clip(0.0, 1.0)
            return markup[:, 0].numpy(), self.networks.q(weights.critic, states, markup)[:, 0].numpy()

        slots = {}
        for name, observation in observations.items():
            rng = stream(self._seed, "explore", self._episode, observation.round, name) if epsilon > 0 else None
            slots[name] = Slot(observation, self.networks.encode(observation), epsilon, rng)
        with torch.no_grad():
            fill(tuple(slots.values()), values)
        self._slots = slots
        return {name: slot.offer for name, slot in slots.items()}

    def _store(self, agent: int, observation: Observation, offer: Offer, came: Feedback) -> None:
        """Store the picks of a slot: lines 10 and 11. A slot without a pick stores nothing."""
        picks, bids = self._slots[observation.service].picks, observation.own_bids
        over, earned = self._earned(agent, observation, came)
        if earned is None:
            return
        for pick in picks:
            last = pick is picks[-1]
            self._transitions.followed(
                agent, next_state=pick.state, next_bids=bids, next_here=pick.free, budget=pick.left, final=0.0
            )
            chosen = np.zeros(len(bids))
            chosen[pick.client] = 1.0
            transition = {
                "state": pick.state, "chosen": chosen, "markup": pick.markup, "reward": earned if last else 0.0,
                "discount": self.settings.discount if last else 1.0,
            }  # fmt: skip
            self._transitions.played(agent, came.accuracy, transition)
        if over and picks:
            nothing = {"next_state": 0 * picks[-1].state, "next_bids": 0 * bids, "next_here": 0 * bids, "budget": 0.0}
            self._transitions.followed(agent, **nothing, final=1.0)

    def _targets(self, batch: Batch) -> Tensor:
        return targets(self.networks, self.target_weights, batch, within=self.settings.values_within)
