"""Which task a client trains in a round: FedFairMMFL's draws, and taking turns; and how fast the worst task learns."""

import numpy as np

from flmarket import NO_CORE, Clearing, Mechanism, measure, mechanism


@mechanism("alpha-fair")
class AlphaFair(Mechanism):
    """FedFairMMFL: each client draws its task m with a probability in proportion to (1 - accuracy_m)^(alpha - 1).

    With ``alpha = 1`` all tasks are equally likely.
    """

    def __init__(self, *, alpha=3.0):
        if not alpha >= 1:
            raise ValueError("alpha must be at least 1")
        self.alpha = alpha

    def clear(self, book):
        weight = np.maximum(1 - book.round.accuracy, 1e-9) ** (self.alpha - 1)
        draws = book.tie_order(book.clients)[np.arange(len(book.clients)), book.services]  # uniform in (0, 1)
        waits = -np.log(draws) / weight[book.services]  # exponential: the shortest is m's as often as its weight says
        core = np.full(len(waits), NO_CORE)
        order = np.lexsort((waits, book.clients))
        core[order[np.unique(book.clients[order], return_index=True)[1]]] = 0
        return Clearing(core, book.bids)


@mechanism("round-robin")
class RoundRobin(Mechanism):
    """Clients take turns: at first the same number for each task, then each goes on to the next task every round."""

    def clear(self, book):
        services, clients = book.round.data_size.shape
        turn = (book.clients * services // clients + book.round.number) % services
        return Clearing(np.where(book.services == turn, 0, NO_CORE), book.bids)


@measure("worst-over-time", better="more")
def worst_over_time(run):
    """Mean over the rounds of the lowest test accuracy of a task, %."""
    return 100 * run.rounds.groupby("round")["test_accuracy"].min().mean()
