"""Serial selection: one client at a time until the budget is used (section "MAHDRL-based solution" of the paper)."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from des.money import to_micro
from des.observation import Observation, Offer
from fl.arithmetic.streams import permutation
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.policy import Policy

_FIRST = 32  # clients that are looked up at once, then eight times as many, and so on


def ranking(observation: Observation, *keys: FloatArray | IntArray) -> IntArray:
    """Return all clients in the order of keys [C], the most important key first; smaller is better.

    Equal clients stand in a random order from the service's own keyed stream, so that no client is favoured by its
    index, and rivals with the same taste do not all want the same one. Without keys, all are equal. Where clients come
    one after another, the one on offer is all there is to rank.
    """
    if observation.turn is not None:
        return np.array([observation.turn.client])
    shuffled = permutation(observation.key, observation.clients)
    if not keys:
        return shuffled
    if len(keys) == 1:
        return np.asarray(shuffled[keys[0][shuffled].argsort(kind="stable")])
    return np.asarray(shuffled[np.lexsort([key[shuffled] for key in reversed(keys)])])


def fill_budget(
    order: Iterable[int] | IntArray,
    payments: FloatArray,
    budget: float,
    *,
    available: BoolArray,
    stop_at_misfit: bool = False,
) -> Offer:
    """Return offers to clients in the given order of preference, as far as the budget goes (eq. 4).

    Args:
        order: client indices, the best first.
        payments: [C] what each would be paid, money with six decimals.
        budget: B_m, money; ``observation.offer_limit`` where a mechanism keeps the budget.
        available: [C] who can be selected: ``observation.available``. The others are skipped, because an offer to a
            client that is offline is an error.
        stop_at_misfit: whether to stop at the first client that does not fit, instead of skipping clients until none
            fits.
    """
    ranked, available = np.asarray(order, dtype=np.int64), np.asarray(available)
    if budget == math.inf:
        clients = ranked[available[ranked]]
        return Offer(clients, payments[clients])
    left, cheapest = to_micro(budget), int(to_micro(payments.min()))
    chosen: list[int] = []
    for client, price in _in_order(ranked, payments, available):
        if left < cheapest:
            break
        if price <= left:
            chosen.append(client)
            left -= price
        elif stop_at_misfit:
            break
    clients = np.array(chosen, dtype=np.int64)
    return Offer(clients, payments[clients])


def _in_order(order: IntArray, payments: FloatArray, available: BoolArray) -> Iterator[tuple[int, int]]:
    """Yield the clients that are available, and their prices in micro-units; a budget seldom buys more than a few."""
    start, end = 0, _FIRST
    while start < len(order):
        clients = order[start:end]
        clients = clients[available[clients]]
        yield from zip(clients.tolist(), to_micro(payments[clients]).tolist(), strict=True)
        start, end = end, 8 * end


class Preference(Policy):
    """Ranks clients, fills the budget in that order and pays each exactly its bid; equal clients in a random order."""

    def act(self, observation: Observation) -> Offer:
        """Offer their bids to the best clients; those that do not fit are skipped until none does."""
        order = ranking(observation, *self.keys(observation))
        return fill_budget(order, observation.own_bids, observation.budget, available=observation.available)

    @abstractmethod
    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return sort keys [C], the most important first; smaller is better. Without keys, the order is random."""
