"""The 0/1 knapsack problem, solved exactly: the best set of clients within a budget in whole micro-units."""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from des.money import Micro, MicroArray
from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import ranking

LARGE = 1_000
"""Items from which on those that cannot be in the best set are left out; among fewer that saves nothing."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """The sets that are kept after an item."""

    item: int  # its index
    before: int  # the sets before it
    kept: IntArray  # [kept] the place of each set among those before it, then these with the item


def best_set(
    seen: Observation,
    prices: MicroArray,  # [C], as for ``knapsack``
    values: FloatArray,  # [C]
    budget: Micro,  # micro-units
) -> IntArray:
    """Return the clients of the most valuable set, in a random order; draws, not numbers, choose among equal sets."""
    order = ranking(seen)
    return order[knapsack(prices[order], values[order], budget)]


def knapsack(
    prices: MicroArray,  # [C] micro-units, not negative
    values: FloatArray,  # [C], finite. Items without a positive value are never taken.
    budget: Micro,  # micro-units
) -> IntArray:  # [k] indices of the items taken, ascending
    """Return the items of the most valuable set whose prices add up to no more than the budget.

    After each item, a set is kept if no set of the same or a lower price matches its value (Nemhauser and Ullmann,
    "Discrete dynamic programming and capital allocation", Management Science 15, 1969). At most one is kept per
    micro-unit, and in practice few are: prices are sums of few different bids, and sets that cannot become the best are
    left out (``_relaxed``). Of equally valuable sets the cheapest is returned, and of equal items the first are taken.
    """
    if prices.shape != values.shape or prices.ndim != 1:
        raise ValueError(
            f"prices and values must be lists of the same length, not of shapes {prices.shape} and {values.shape}"
        )
    if (prices < 0).any() or not np.isfinite(values).all():
        raise ValueError("prices must not be negative, and values must be finite")
    cost, worth = np.zeros(1, dtype=np.int64), np.zeros(1)
    stages: list[_Stage] = []
    items = np.flatnonzero((values > 0) & (prices <= budget))
    if len(items) >= LARGE:
        items = np.array(_worth_a_look(items, prices, values, budget), dtype=np.int64)
    rate, slack = _relaxed(prices[items], values[items], budget)
    least = -slack  # of what a set is worth beyond its cost at that rate
    for item, price, value in zip(items.tolist(), prices[items].tolist(), values[items].tolist(), strict=True):
        gain = value - rate * price
        if gain < -slack:
            continue
        least += max(gain, 0.0)
        before = len(cost)  # ascending, so that the item fits into the first sets
        fits = int(cost.searchsorted(budget - price, "right"))
        if gain > slack:
            cost, worth = cost[:fits] + price, worth[:fits] + value
            stages.append(_Stage(item, before, np.arange(before, before + fits)))
            continue
        cost = np.concatenate([cost, cost[:fits] + price])
        worth = np.concatenate([worth, worth[:fits] + value])
        order = np.lexsort((-worth, cost))
        cost, worth = cost[order], worth[order]
        kept = worth - rate * cost >= least
        kept[1:] &= worth[1:] > np.maximum.accumulate(worth)[:-1]
        cost, worth = cost[kept], worth[kept]
        stages.append(_Stage(item, before, order[kept]))
    position, chosen = int(worth.argmax()), []  # the cheapest of the best
    for stage in reversed(stages):
        position = int(stage.kept[position])
        if position >= stage.before:
            chosen.append(stage.item)
            position -= stage.before
    return np.array(chosen[::-1], dtype=np.int64)


def _relaxed(prices: MicroArray, values: FloatArray, budget: Micro) -> tuple[float, float]:
    """Return what money is worth where items can be bought in parts, and the most that the best set can lose to that.

    At any rate at which money has a value, the budget's and all that items are worth beyond their prices is a bound of
    every set; with an item that is worth less, or without one that is worth more, it falls by the difference. A set is
    left out once it has fallen below what the items of the highest value for money are worth together.
    """
    rates = values / np.maximum(prices, 1)
    left, reached, rate = budget, 0.0, 0.0
    for place in (-rates).argsort().tolist():
        if prices[place] <= left:
            left -= int(prices[place])
            reached += float(values[place])
        else:
            rate = max(rate, float(rates[place]))
    bound = rate * budget + float(np.maximum(values - rate * prices, 0.0).sum())
    return rate, bound - reached + 1e-9 * bound  # rounding leaves out nothing


def _worth_a_look(items: IntArray, prices: MicroArray, values: FloatArray, budget: Micro) -> list[int]:
    """Return those of some items, ascending, that can be in the best set: of a large market few.

    With an item the best set holds all that are no dearer and no less valuable, or it would hold one of them instead.
    So an item is left out if these and it cost more than the budget.
    """
    items = items[np.lexsort((-values[items], prices[items]))]
    kept: list[int] = []
    together: list[tuple[float, int, Micro]] = []  # the most valuable so far that the budget buys together, as a heap
    cost, least = 0, 0.0  # theirs, and the value of which more is needed from here on
    for place, (item, price, value) in enumerate(
        zip(items.tolist(), prices[items].tolist(), values[items].tolist(), strict=True)
    ):
        if value <= least:
            continue
        kept.append(item)
        heappush(together, (value, -place, price))
        cost += price
        while cost > budget:
            least, out, freed = heappop(together)
            cost -= freed
            if out == -place:
                kept.pop()
    return sorted(kept)
