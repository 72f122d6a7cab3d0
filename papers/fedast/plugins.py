"""FedAST: a fixed number of requests for each task, a buffer for each model; and how long all tasks take."""

import numpy as np

from flmarket import Offer, Policy, Trigger, measure, policy, trigger


@policy("requests")
class Requests(Policy):
    """As many clients at work as its part of all requests, drawn at random, each paid its bid.

    Tasks that are still there share the requests alike: those of a task that has met its target go to the others.
    """

    summary = "a fixed number of requests in the field"

    def __init__(self, context, *, requests=72):
        super().__init__(context)
        self.requests = requests

    def act(self, observation):
        there = max(1, int((observation.bids > 0).any(axis=1).sum()))
        wanted = self.requests // there - observation.progress.at_work
        free = np.flatnonzero(observation.available)
        chosen = observation.rng().permutation(free)[: max(0, wanted)]
        return Offer(chosen, observation.own_bids[chosen])


@policy("over-select")
class OverSelect(Requests):
    """Sync-ST's clients of a round: all of its part of the requests, whoever is still at work of an earlier round."""

    summary = "as many clients as requests, in each round anew"

    def act(self, observation):
        there = max(1, int((observation.bids > 0).any(axis=1).sum()))
        free = np.flatnonzero(observation.available)
        chosen = observation.rng().permutation(free)[: self.requests // there]
        return Offer(chosen, observation.own_bids[chosen])


@trigger("fedast")
class FedAST(Trigger):
    """A new model of every ``ratio``-th part of the requests; ``rate`` of a change counts, however stale it is."""

    def __init__(self, *, ratio=24, rate=0.125):
        self.ratio, self.rate = ratio, rate

    def due(self, gathered):
        return gathered.arrived * self.ratio >= gathered.arrived + gathered.at_work

    def share(self, staleness):
        return self.rate


@measure("seconds-to-all-targets", better="less")
def seconds_to_all_targets(run):
    """Simulated seconds until the last task met its target; nothing where one never did."""
    rounds = run.rounds
    reached = rounds[rounds["accuracy"] >= rounds["target_accuracy"]].groupby("service")["sim_time"].min()
    return None if len(reached) < len(run.services) else reached.max()


@measure("updates-paid", better="less")
def updates_paid(run):
    """Updates that clients delivered, in all tasks together, whether or not they were used."""
    return float(run.offers["paid"].notna().sum())
