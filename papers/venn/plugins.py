"""What a job asks for: so many devices for each model, and no more until it has made one of enough of their updates."""

import numpy as np

from flmarket import Offer, Policy, policy


@policy("request")
class Request(Policy):
    """Wants ``clients`` devices, drawn at random, less those that are at work or have delivered for the next model.

    A model is made of ``enough`` updates (the trigger fedbuff, of as large a buffer), so that what has arrived since
    the last one is what was hired and is no more at work, less the models' updates. No device leaves or is late here.
    """

    def __init__(self, context, *, clients, enough):
        super().__init__(context)
        if not 1 <= enough <= clients:
            raise ValueError("enough must be at least 1 and at most clients")
        self._clients, self._enough, self._hired = clients, enough, 0

    def act(self, observation):
        progress = observation.progress
        arrived = self._hired - progress.at_work - progress.models * self._enough
        able = np.flatnonzero(observation.available)
        chosen = observation.rng().permutation(able)[: max(0, self._clients - progress.at_work - arrived)]
        bids = observation.own_bids[chosen]
        return Offer(chosen, bids)

    def learn(self, observation, offer, feedback):
        self._hired += int(feedback.won.sum())

    def state(self):
        return {"hired": np.array([self._hired])}

    def restore(self, state):
        self._hired = int(state["hired"][0])
