"""CARE-CO and CARE-NO, written anew for clients that all services name, against the plug-ins; and the tables.

``python papers/care/check.py`` prints the tables of README.md.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import flmarket
from flmarket import mean_interval
from flmarket.testing import clear_round

HERE = Path(__file__).parent
SHORT: dict[str, Any] = {"runs": [], "rounds": 2}
"""Settings with which the scenario plays in a second."""

_ABSTRACT = {"claimed": ["truthfulness", "individual rationality", "budget feasibility"], "by": "abstract"}
_GROUPS = {"options": {"groups": 2, "limits": 1}}
CLAIMS = [
    {"rule": "care-co", "shape": {"services": 1}, "note": "the rule is second-hand", **_GROUPS, **_ABSTRACT},
    {
        "rule": "care-co",
        "markets": 20,
        "by": "a client's work costs alike for all services there, and not here",
        **_GROUPS,
    },
    {"rule": "care-no", "shape": {"services": 1}, "by": "the public file simplifies the payment", **_GROUPS},
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

SCALE = 1000.0  # money that is offered for a reputation of 1: more than anybody is paid


class Market(NamedTuple):
    """Clients with costs and reputations, services with budgets, and how many of a group each can have."""

    costs: np.ndarray
    reputations: np.ndarray
    budgets: np.ndarray
    limits: np.ndarray  # [M, groups]; a client's group is its number modulo groups

    @property
    def groups(self) -> int:
        return self.limits.shape[1]

    def within_limits(self, order: list[int]) -> list[int]:
        """Return those of an order that have room: the first of each group, as many as all services can have of it."""
        room = self.limits.sum(axis=0).tolist()
        there = []
        for i in order:
            if room[i % self.groups] > 0:
                room[i % self.groups] -= 1
                there.append(i)
        return there

    def by_price(self) -> list[int]:
        return np.argsort(self.costs / self.reputations).tolist()


def drawn(random: Random, services: int, groups: int, clients: int = 120) -> Market:
    """Return a market by the settings of the public code."""
    costs = np.array([random.uniform(low, low + 2) for low in random.choices([2, 3, 4], k=clients)])
    reputations = np.array([random.uniform(0.1, 1) for _ in range(clients)])
    budgets = np.array([random.uniform(40, 80) for _ in range(services)])
    sizes = [len(range(group, clients, groups)) for group in range(groups)]
    return Market(
        costs, reputations, budgets, np.array([[random.randint(1, max(1, n)) for n in sizes] for _ in range(services)])
    )


def paid(name: str, market: Market, bids: np.ndarray | None = None, seed: int | None = None) -> np.ndarray:
    """Return what each client is paid under a mechanism of plugins.py; NaN for those that are not hired."""
    plugins = flmarket.load_plugin(HERE / "plugins.py")
    made = plugins.__dict__[name](groups=market.groups, limits=market.limits.tolist())
    asked, offered = np.broadcast_arrays(
        market.costs if bids is None else bids, SCALE * market.reputations, np.empty((len(market.budgets), 1))
    )[:2]
    prices = clear_round(made, asked, offered, market.budgets, seed=seed)
    served = ~np.isnan(prices)
    for m in range(len(market.budgets)):
        of_group = np.bincount(np.flatnonzero(served[m]) % market.groups, minlength=market.groups)
        assert (of_group <= market.limits[m]).all()
    assert (served.sum(axis=0) <= 1).all()
    return np.where(served.any(axis=0), np.nansum(prices, axis=0), np.nan)


def care_co(market: Market) -> tuple[float, float]:
    """Return the reputation that CARE-CO hires, and the price of a unit of it."""
    order, budget = market.by_price(), market.budgets.sum()
    unit, total, price = (market.costs / market.reputations)[order], 0.0, 0.0
    for k in range(1, len(order) + 1):
        best = market.within_limits(sorted(order[:k], key=lambda i: -market.reputations[i]))
        worth = float(market.reputations[best].sum())
        if unit[k - 1] * worth > budget:
            break
        total, price = worth, min(budget / worth if worth else 0.0, unit[k] if k < len(order) else np.inf)
    return total, price


def pooled_rrafl(market: Market) -> float:
    """Return the reputation of a rival, RRAFL as papers/rrafl has it: the first n at the price of the next one."""
    order, unit = market.by_price(), np.sort(market.costs / market.reputations)
    n = int(np.sum(unit[1:] * np.cumsum(market.reputations[order])[:-1] <= market.budgets.sum()))
    return float(market.reputations[market.within_limits(order[:n])].sum())


def pooled_own_bid(market: Market) -> float:
    """Return the reputation of a rival, RRAFL as the public code has it: the first that fit are paid what they ask."""
    order, left, hired = market.by_price(), market.budgets.sum(), []
    for i in order:
        left -= market.costs[i]
        if left < 0:
            break
        hired.append(i)
    return float(market.reputations[market.within_limits(hired)].sum())


def random_prices(market: Market, random: Random) -> float:
    """Return the reputation of a rival, RanPri: a client may take a price drawn from the lowest to the highest bid."""
    left, room, total = market.budgets.copy(), market.limits.copy(), 0.0
    for i, cost in enumerate(market.costs):
        price = random.uniform(market.costs.min(), market.costs.max())
        services = random.sample(range(len(left)), len(left)) if price >= cost else []
        m = next((m for m in services if left[m] >= price and room[m, i % market.groups]), None)
        if m is not None:
            left[m] -= price
            room[m, i % market.groups] -= 1
            total += market.reputations[i]
    return total


def by_flow(market: Market) -> float:
    """Return the most reputation of all clients by the public code's flow: its limits count reputation, not clients."""
    of_group = [market.reputations[group :: market.groups].sum() for group in range(market.groups)]
    return float(np.minimum(of_group, market.limits.sum(axis=0)).sum())


def example(costs: list[float], reputations: list[float], budgets: list[float], limits: list[list[int]]) -> Market:
    return Market(*(np.array(it, float) for it in (costs, reputations, budgets)), np.array(limits))


def check_care_co_by_hand() -> None:
    """Groups are {0, 2} and {1, 3}, with room for one each: 1.2 = 12 / (M = 3, of clients 2 and 1).

    The units are 0.1, 0.2, 0.25 and 0.4 of 10, M is 1, 2, 3 (2 for 0) and 3: 0.4 x 30 = 12 is just there.
    """
    market = example([1, 2, 5, 4], [0.1, 0.1, 0.2, 0.1], [6, 6], [[1, 1], [0, 0]])
    assert np.array_equal(paid("CareCO", market), [np.nan, 4, 8, np.nan], equal_nan=True)
    both = market._replace(limits=np.ones((2, 2), np.int64))  # now M is 1, 2, 4 and 5: 0.25 x 40 = 10, 0.4 x 50 = 20
    assert np.array_equal(paid("CareCO", both), [3, 3, 6, np.nan], equal_nan=True)  # 12 / 40 = 0.3 a unit


def check_care_no_by_hand() -> None:
    """At a price of 3 the budgets 6 and 4 pay for 2 + 1 clients, and three ask no more; at 2, for 3 + 2, and two do."""
    market = example([1, 2, 3, 4], [0.5] * 4, [6, 4], [[4], [4]])
    assert np.array_equal(paid("CareNO", market), [3, 3, 3, np.nan], equal_nan=True)


def check_the_simplified_payment_of_care_no_is_not_truthful() -> None:
    """Three of four clients are hired at 3. The one that is not, at a cost of 2.5, gets 3 if it asks 0.5."""
    market = example([1, 1, 1, 2.5], [0.5] * 4, [6, 4], [[4], [4]])
    assert np.isnan(paid("CareNO", market)[3])
    assert paid("CareNO", market, np.array([1, 1, 1, 0.5]))[3] == 3


def check_reputation_and_price_are_those_of_the_rule() -> None:
    random = Random(1)
    for _ in range(60):
        market = drawn(random, random.randint(1, 4), random.randint(1, 5), clients=random.randint(1, 25))
        market = market._replace(budgets=market.budgets * random.uniform(0.05, 1))
        prices, (total, unit) = paid("CareCO", market), care_co(market)
        hired = ~np.isnan(prices)
        assert abs(market.reputations[hired].sum() - total) < 1e-9
        assert np.allclose(prices[hired], unit * market.reputations[hired], atol=1e-5)
        assert np.nansum(prices) <= market.budgets.sum() + 1e-9


def gains(name: str, markets: int, tries: int) -> list[float]:
    """Return what each client of small markets gains at most by another bid, of ``tries``; costs are the truth."""
    random, found = Random(2), []
    for _ in range(markets):
        market = drawn(random, random.randint(1, 3), random.randint(1, 3), clients=random.randint(2, 8))
        market = market._replace(budgets=market.budgets * random.uniform(0.05, 0.5))
        truth = np.nan_to_num(paid(name, market) - market.costs)
        for i, cost in enumerate(market.costs):
            bids = np.tile(market.costs, (tries, 1))
            bids[:, i] = [random.uniform(0, 2 * cost) for _ in range(tries)]
            other = [float(np.nan_to_num(paid(name, market, bid)[i] - cost)) for bid in bids]
            found.append(max(other) - float(truth[i]))
    return found


def check_no_bid_beats_the_truth_under_care_co() -> None:
    assert max(gains("CareCO", 40, 6)) < 1e-5


def check_the_flow_of_the_public_code_counts_reputation_in_place_of_clients() -> None:
    """One service may have one of three clients, of reputation 0.3 each: the flow finds 0.9."""
    market = example([1, 1, 1], [0.3] * 3, [10], [[1]])
    assert abs(by_flow(market) - 0.9) < 1e-9
    assert int((~np.isnan(paid("CareCO", market))).sum()) == 1


def _text(values: list[float], digits: int = 1) -> str:
    return mean_interval(values).text(f".{digits}f")


def main() -> None:
    for name in ("CareCO", "CareNO"):
        found = gains(name, 100, 20)
        print(name, sum(gain > 1e-5 for gain in found), "of", len(found), "clients gain, at most", max(found))
    rules: dict[str, Callable[[Market, Random], float]] = {
        "care-co": lambda market, _: float(market.reputations[~np.isnan(paid("CareCO", market))].sum()),
        "care-no": lambda market, it: float(
            market.reputations[~np.isnan(paid("CareNO", market, seed=it.randrange(1000)))].sum()
        ),
        "pooled rrafl": lambda market, _: pooled_rrafl(market),
        "pooled, own bids": lambda market, _: pooled_own_bid(market),
        "random prices": random_prices,
    }
    for services, groups in [(m, 10) for m in range(2, 13, 2)] + [(5, g) for g in range(4, 25, 4)]:
        random = Random(100 * services + groups)
        markets = [drawn(random, services, groups) for _ in range(20)]
        found = {name: [rule(market, random) for market in markets] for name, rule in rules.items()}
        beyond = sum(
            by_flow(it) > it.reputations[it.within_limits(np.argsort(-it.reputations).tolist())].sum() + 1e-9
            for it in markets
        )
        print(services, groups, {name: _text(each) for name, each in found.items()})
        less = {name: np.subtract(found["care-co"], each).tolist() for name, each in found.items() if name != "care-co"}
        print("    care-co less", {name: _text(each) for name, each in less.items()}, f"flow beyond: {beyond} of 20")


if __name__ == "__main__":
    main()
