"""A contest for a reward that clients share by the data they give: leader, followers and the payment."""

import numpy as np

from flmarket import Clearing, Mechanism, Offer, Policy, Response, allocate, mechanism, policy, response

HALVINGS = 100  # of the range of totals, to the last bit


def equilibrium(reward, unit, data):
    """Return how much of its data each client gives where each answers best to all others.

    Client i keeps ``reward * x_i / X - unit_i * x_i``, with X what all give together. Where X is known, its best answer
    is ``x_i = X (1 - unit_i X / reward)``, within 0 and its data; X is that at which the answers add up to it.
    """
    unit = np.maximum(unit, 1e-12)  # with nothing to pay there is no best answer
    low, high = 0.0, reward / unit.min()
    for _ in range(HALVINGS):
        total = (low + high) / 2
        given = np.clip(total * (1 - unit * total / max(reward, 1e-12)), 0.0, data)
        low, high = (total, high) if given.sum() > total else (low, total)
    return given


def best_reward(unit, worth):
    """Return the reward that leaves the leader the most of ``worth * log(1 + data) - reward``, in equilibrium."""
    unit = np.sort(np.asarray(unit, dtype=float))
    count = 2
    while count < len(unit) and unit[count] < unit[: count + 1].sum() / count:
        count += 1
    return max(worth - unit[:count].sum() / (count - 1), 0.0)


@response("contest")
class Contest(Response):
    """Clients give the data of the equilibrium of all that were awarded work.

    The price of an award is the whole reward.
    """

    def respond(self, awards):
        if awards.menu is not None:  # then there is no contest
            return self.best_entry(awards, awards.menu)
        part = np.zeros(len(awards.price))
        for service in np.unique(awards.services):
            mine = awards.services == service
            unit, data = awards.cost[mine] / awards.data_size[mine], awards.data_size[mine]
            part[mine] = equilibrium(awards.price[mine].max(), unit, data) / data
        return part


@mechanism("shared-reward")
class SharedReward(Mechanism):
    """Clients share the least that a service offers one of them, after delivery and by the data given."""

    below_bid = True

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order)
        return Clearing(core, book.payments)

    def settle(self, book, clearing, deliveries):
        offers = deliveries.offers
        size = book.round.data_size[deliveries.service, book.clients[offers]]
        given = np.rint(deliveries.promised * 1e6).astype(np.int64) * size * deliveries.delivered
        reward, total = int(book.payments[offers].min()), max(int(given.sum()), 1)
        return np.array([reward * each // total for each in given.tolist()], dtype=np.int64)


@policy("leader")
class Leader(Policy):
    """Offers the reward to all clients: one that is given, or the best for ``worth * log(1 + data) - reward``."""

    privileged = True  # it knows data and costs, as the leader of the game does

    def __init__(self, context, *, reward=0.0, worth=0.0):
        super().__init__(context)
        self.reward, self.worth = reward, worth

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        unit = (observation.own_bids / observation.privileged.data_size)[clients]
        reward = self.reward or best_reward(unit, self.worth)
        return Offer(clients, np.maximum(reward, observation.own_bids[clients]))
