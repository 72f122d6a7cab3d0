"""The reward that line 11 of Algorithm 1 stores: what r / Omega is above the usual one, which is ours.

r = Omega^accuracy climbs from near 0 to 1 whatever a service does, and that trend is far larger than what one round's
choice changes. So rewards are centred: measured from a running mean over the earlier episodes at the same round n. It
depends on n alone and episodes are equally long, so it takes the same from the return of every policy.
"""

from collections import defaultdict

import numpy as np

from learning.mahdrl.advantages import Baseline
from learning.mahdrl.networks import Tensors

SLOWEST_RATE = 0.03  # rate per episode at which the usual rewards forget once they have seen 33 of them

SCALE = 5.0  # brings what one choice changes to a size at which the networks learn


class Rewards:
    """Turns what the agents earn in an episode into what is stored."""

    def __init__(self, agents: int, rounds: int, gamma: float) -> None:
        self._gamma = gamma
        self._usual = Baseline(agents, rounds, slowest=SLOWEST_RATE)
        self._episode: defaultdict[int, list[float]] = defaultdict(list)

    def begin(self) -> None:
        """Start an episode."""
        self._episode.clear()

    def stored(
        self,
        agent: int,  # its index
        reward: float,  # r / Omega of the round
        left: int,  # after its last round, how many rounds of the market are to come; 0 before
    ) -> float | None:
        """Return what is stored of an agent's round; None in the first episode, which has no earlier ones.

        A service that exits "still gets a constant reward" in the rounds to come. It takes no decisions in them, so its
        last transition gets all of that, discounted.
        """
        now = len(self._episode[agent])
        self._episode[agent].append(reward)
        if not self._usual.episodes[agent]:
            return None
        above = reward - self._usual.mean[agent, now : now + left + 1]
        return SCALE * float(np.sum(self._gamma ** np.arange(left + 1) * above))

    def end(self) -> None:
        """End the episode: later ones are compared with it, too, at a constant reward after an exit."""
        for agent, rewards in self._episode.items():
            self._usual.add(agent, np.array(rewards))

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return self._usual.state()

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self._usual.restore(state)
