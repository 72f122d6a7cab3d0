"""Algorithm 1 written anew from reading, for any set function; against worked examples, the plug-in and misreports.

``python papers/bfm-swm/check.py`` prints the numbers of README.md.
"""

from collections.abc import Callable, Iterator
from math import floor, inf, isnan, nan, sqrt
from pathlib import Path
from random import Random

import numpy as np

import flmarket
from flmarket.testing import clear_round

Value = Callable[[frozenset[int]], float]
Prices = dict[int, float]  # of those who sell

HERE = Path(__file__).parent
SHORT = {"sweep": {}}
"""Settings with which the scenario plays in a second."""

_THEOREM = {
    "claimed": ["truthfulness", "individual rationality", "budget feasibility"],
    "by": "Theorem 4.1, which says obviously strategyproof: more than is attacked",
}
CLAIMS = [{"rule": "bfm-swm", "shape": {"services": 1}, **_THEOREM}, {"rule": "bfm-swm", **_THEOREM}]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

MONOTONE = {"lists": 1, "alpha": 1 + sqrt(6) / 2, "beta": 3.0}
GENERAL = {"lists": 2, "alpha": 1 + 2 * sqrt(6) / 3, "beta": 4.0}
FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0, 8.0)
CLOSE = 3e-6  # money; the plug-in pays whole micro-units


def exact(price: float) -> float:
    return price


def bfm_swm(
    value: Value,
    costs: list[float],
    budget: float,
    eps: float,
    *,
    lists: int,
    alpha: float,
    beta: float,
    posted: Callable[[float], float] = exact,  # a price from that of the rule
) -> Prices:
    """Return what BFM-SWM pays (Algorithm 1), sellers in the order of their numbers."""
    prices, active, owner = [budget] * len(costs), [c <= budget for c in costs], [inf] * len(costs)
    rho, best_one = eps / alpha, frozenset[int]()
    sets = [frozenset[int]()] * lists

    def gain(u: int, of: frozenset[int]) -> float:
        return value(of | {u}) - value(of)

    def surplus(of: frozenset[int]) -> float:
        return value(of) - sum(prices[u] for u in of)

    while True:
        rho, last, sets = alpha * rho, sets, [frozenset()] * lists
        for u in [u for u in range(len(costs)) if active[u] and u not in best_one.union(*last)]:
            j = max(range(lists), key=lambda i: gain(u, sets[i])) if owner[u] == inf else int(owner[u])
            prices[u] = min(prices[u], posted(gain(u, sets[j]) / (beta + rho / budget)))
            active[u] = costs[u] <= prices[u]
            if active[u] and surplus(sets[j] | {u}) > rho:
                best_one = frozenset({u})
                break
            if active[u]:
                sets[j], owner[u] = sets[j] | {u}, j
        if all(u in best_one.union(*last, *sets) for u in range(len(costs)) if active[u]):
            return {u: prices[u] for u in sorted(max((*last, *sets, best_one), key=surplus))}


def additive(values: list[float]) -> Value:
    return lambda of: sum(values[u] for u in of)


def coverage(sets: list[set[int]]) -> Value:
    return lambda of: float(len(set().union(*(sets[u] for u in of))))


def cut(edges: list[tuple[int, int]]) -> Value:
    return lambda of: float(sum(u in of and w not in of for u, w in edges))


def paid(name: str, values: list[float], bids: list[float], budget: float, **options: float) -> Prices:
    """Return what a mechanism of flmarket pays where one service names all that are worth their bids, by number."""
    flmarket.load_plugin(HERE / "plugins.py")
    offers = np.where(np.less_equal(bids, values), values, nan)
    prices = clear_round(flmarket.registered("mechanism", name)(**options), bids, offers, budget)
    return {u: price for u, price in enumerate(prices.tolist()) if not isnan(price)}


def same(one: Prices, two: Prices) -> bool:
    return one.keys() == two.keys() and all(abs(one[u] - two[u]) < CLOSE for u in one)


def gainers(value: Value, costs: list[float], random: Random, eps: float = 0.1) -> int:
    """Return how many of four misreports of each seller pay, in the form of the public verification (B = 1, l = 2).

    AssertionError where the truth breaks the budget, or costs somebody more than it is paid, or the buyer its surplus.
    """
    truth, found = bfm_swm(value, costs, 1.0, eps, **GENERAL), 0
    assert sum(truth.values()) <= 1
    assert all(price >= costs[u] for u, price in truth.items())
    assert value(frozenset(truth)) >= sum(truth.values())
    for u, cost in enumerate(costs):
        for _ in range(4):
            lie = [*costs[:u], min(cost * random.choice(FACTORS), 1.5), *costs[u + 1 :]]
            other = bfm_swm(value, lie, 1.0, eps, **GENERAL)
            found += other.get(u, cost) - cost > truth.get(u, cost) - cost + 1e-7
    return found


def families(coverages: int, cuts: int) -> Iterator[tuple[Value, list[float]]]:
    """Yield values and costs of twelve sellers, drawn by the recipe of the public verification."""
    for i in range(coverages + cuts):
        random = Random(1000 + i)
        sets = [set(random.sample(range(40), 6)) for _ in range(12)]
        edges = [tuple(random.sample(range(12), 2)) for _ in range(36)]
        yield coverage(sets) if i < coverages else cut(edges), [random.uniform(0.02, 0.5) for _ in range(12)]


def markets(count: int, ratio: float, sellers: int = 12) -> Iterator[tuple[list[float], list[float]]]:
    """Yield values U(0.1, 1) and costs of up to that part of the values, with six decimals."""
    random = Random(1)
    for _ in range(count):
        values = [round(random.uniform(0.1, 1), 6) for _ in range(sellers)]
        yield values, [round(ratio * random.random() * value, 6) for value in values]


def subsets(values: list[float], costs: list[float], budget: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the value and the cost of each set of sellers whose costs the budget can pay."""
    members = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
    worth, cost = members @ np.array(values), members @ np.array(costs)
    return worth[cost <= budget], cost[cost <= budget]


def welfare(prices: Prices, values: list[float], costs: list[float]) -> float:
    return sum(values[u] - costs[u] for u in prices)


def check_four_additive_sellers_by_hand() -> None:
    """The second seller is good enough to be in a set, but the first alone is better, at 1 / (3 + .494949)."""
    values, costs = [1, 0.8, 0.6, 0.3], [0.2, 0.1, 0.15, 0.2]
    assert same(paid("bfm-swm", values, costs, 1, eps=0.1), {0: 0.286127})
    assert same(bfm_swm(additive(values), costs, 1, 0.1, **MONOTONE), {0: 0.286127})
    assert same(paid("bfm-swm", values, costs, 1, eps=0.1, alpha=GENERAL["alpha"], beta=4), {0: 0.213071})
    assert same(bfm_swm(additive(values), costs, 1, 0.1, **GENERAL), {0: 0.213071})
    assert 0 in paid("bfm-swm", values, [0.2861, *costs[1:]], 1, eps=0.1)
    assert 0 not in paid("bfm-swm", values, [0.2862, *costs[1:]], 1, eps=0.1)


def check_two_winners_by_hand() -> None:
    values, costs = [0.5, 0.4, 0.4, 0.3, 0.3], [0.03, 0.02, 0.05, 0.06, 0.01]
    assert same(paid("bfm-swm", values, costs, 0.5, eps=0.2), {1: 0.076890, 4: 0.057667})
    assert same(bfm_swm(additive(values), costs, 0.5, 0.1, **MONOTONE), {1: 0.076890, 4: 0.057667})


def check_coverage_by_hand() -> None:
    """With two lists, the last seller adds as much to either, and goes to the first, where it wins."""
    value = coverage([{1, 2, 3, 4}, {3, 4, 5}, {5, 6}, {1, 6, 7, 8}, {8, 9}])
    costs = [0.3, 0.2, 0.1, 0.35, 0.15]
    assert same(bfm_swm(value, costs, 10, 1, **MONOTONE), {1: 0.731505, 2: 0.243835, 4: 0.487670})
    assert same(bfm_swm(value, costs, 10, 1, **GENERAL), {0: 0.852285, 4: 0.426143})


def as_by_rule(count: int, posted: Callable[[float], float]) -> int:
    """Return in how many of twice as many markets the plug-in does as Algorithm 1 with such prices."""
    found = 0
    for ratio in (0.2, 0.6):
        for values, costs in markets(count, ratio):
            rule = bfm_swm(additive(values), costs, 1.0, 0.1, **MONOTONE, posted=posted)
            found += same(paid("bfm-swm", values, costs, 1.0, eps=0.1), rule)
    return found


def whole(price: float) -> float:
    return floor(price * 1e6) / 1e6


def check_the_plugin_is_algorithm_1_in_whole_micro_units() -> None:
    assert as_by_rule(10, whole) == 20


def check_budgets_and_the_guarantee(count: int = 10) -> None:
    """Also for the set that makes the most of the guarantee: 0.0877 v(O) - c(O) - eps / 3."""
    for ratio in (0.01, 0.2, 0.6):
        for values, costs in markets(count, ratio):
            prices = paid("bfm-swm", values, costs, 1.0, eps=0.1)
            worth, cost = subsets(values, costs, 1.0)
            assert sum(prices.values()) <= 1
            assert welfare(prices, values, costs) >= (2 / (13 + 4 * sqrt(6)) * worth - cost).max() - 0.1 / 3


def check_no_misreport_pays() -> None:
    assert sum(gainers(*family, Random(7)) for family in families(1, 1)) == 0


def check_an_order_by_bids_would_let_sellers_gain() -> None:
    """Dearer sellers first, which the plug-in does not do: somebody comes to another place, and gains by a bid."""

    def dearest_first(values: list[float], bids: list[float]) -> Prices:
        order = sorted(range(len(bids)), key=lambda u: -bids[u])
        prices = paid("bfm-swm", [values[u] for u in order], [bids[u] for u in order], 1.0, eps=0.1)
        return {order[place]: price for place, price in prices.items()}

    def utility(prices: Prices, costs: list[float]) -> float:
        return prices.get(0, costs[0]) - costs[0]

    found = 0
    for values, costs in markets(10, 0.2, 4):
        lies = [[costs[0] * factor, *costs[1:]] for factor in FACTORS]
        truth = utility(dearest_first(values, costs), costs)
        found += any(utility(dearest_first(values, lie), costs) > truth + CLOSE for lie in lies)
    assert found


def table(count: int = 100, budget: float = 1.0) -> None:
    """Print the welfare that mechanisms reach, % of that of the best set whose costs the budget can pay."""
    for ratio in (0.01, 0.1, 0.5, 1.0):
        reached: dict[str, list[float]] = {"bfm-swm": [], "proportional-share": [], "score-auction": []}
        for values, costs in markets(count, ratio):
            best = float(np.subtract(*subsets(values, costs, budget)).max())
            for name, shares in reached.items():
                shares.append(100 * welfare(paid(name, values, costs, budget), values, costs) / best)
        ahead = np.subtract(reached["bfm-swm"], reached["proportional-share"])
        cells = [flmarket.mean_interval(shares).text(".1f") for shares in (*reached.values(), ahead)]
        print(f"| {ratio} | {' | '.join(cells)} |")


if __name__ == "__main__":
    print(f"as Algorithm 1 of 2,000: {as_by_rule(1000, exact)}, with whole micro-units {as_by_rule(1000, whole)}")
    check_budgets_and_the_guarantee(1000)
    random = Random(7)
    tried = list(families(16, 8))
    print(f"misreports that pay: {sum(gainers(*family, random) for family in tried)} of {len(tried) * 12 * 4}")
    table()
