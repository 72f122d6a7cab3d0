"""From rounds to the replay buffer B: what line 11 of Algorithm 1 stores, and when."""

from collections import defaultdict
from typing import Any

import numpy as np

from learning.mahdrl.credit import Baseline, advantages, progress
from learning.mahdrl.networks import Tensors
from learning.mahdrl.replay import Replay

Fields = dict[str, Any]  # part of a transition, by name; ``equations.Batch`` lists the names


class Transitions:
    """Stores transitions in a replay buffer.

    A round is known before the state that follows it is: that comes with the next round, or never if the round is the
    agent's last one. So each agent has at most one transition that waits for its second half.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._waiting: dict[int, Fields] = {}

    def begin(self) -> None:
        """Start an episode: what waits for its second half is dropped."""
        self._waiting.clear()

    def played(self, agent: int, accuracy: float, transition: Fields) -> None:
        """Take in an agent's round, and the accuracy that its model has after it."""
        self._waiting[agent] = transition

    def followed(self, agent: int, **after: Any) -> None:
        """Take in what followed the agent's last round; in its first round there is nothing that could be followed."""
        if agent in self._waiting:
            self._store(agent, self._waiting.pop(agent) | after)

    def end(self) -> None:
        """End the episode."""

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return self._replay.state()

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self._replay.restore(state)

    def _store(self, agent: int, transition: Fields) -> None:
        self._replay.add(agent, **transition)


class CreditedTransitions(Transitions):
    """For ``target="advantage"``, a departure: the n-step advantage of ``credit`` takes the place of eq. (11).

    It is known when the episode is over. The transitions are stored then, with the advantage as their reward, and as
    final: nothing is added to it. The first episode has no baseline that it could be compared with, and stores none.
    """

    def __init__(self, replay: Replay, rounds: int, horizon: int, scale: float) -> None:
        super().__init__(replay)
        self._baseline = Baseline(len(replay.stored), rounds)
        self._horizon, self._scale = horizon, scale
        self._episode: defaultdict[int, list[Fields]] = defaultdict(list)
        self._accuracies: defaultdict[int, list[float]] = defaultdict(list)

    def begin(self) -> None:
        super().begin()
        self._episode.clear()
        self._accuracies.clear()

    def played(self, agent: int, accuracy: float, transition: Fields) -> None:
        """Take in an agent's round, and the accuracy that its model has after it."""
        super().played(agent, accuracy, transition)
        self._accuracies[agent].append(accuracy)

    def end(self) -> None:
        for agent, accuracies in self._accuracies.items():
            deviations = self._baseline.deviations(agent, progress(accuracies))
            if deviations is None:
                continue
            credit = advantages(deviations, np.ones(len(deviations)), horizon=self._horizon, scale=self._scale)
            for transition, advantage in zip(self._episode[agent], credit.tolist(), strict=True):
                self._replay.add(agent, **transition | {"reward": advantage, "final": 1.0})

    def state(self) -> Tensors:
        return {**super().state(), **self._baseline.state()}

    def restore(self, state: Tensors) -> None:
        super().restore(state)
        self._baseline.restore(state)

    def _store(self, agent: int, transition: Fields) -> None:
        self._episode[agent].append(transition)
