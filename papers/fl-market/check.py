"""All-in and FairQuery, their rules written anew from reading, against the plug-ins and their closed forms.

``python papers/fl-market/check.py`` prints the numbers of README.md.
"""

from collections.abc import Iterator
from math import exp, nan, sqrt
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import flmarket
from flmarket.testing import clear_round

Prices = list[float]  # of each owner; NaN for those who sell nothing

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "services.buyer.budget": 3.6}
"""Settings with which the scenario plays in a second."""

CLOSE = 1e-5  # money; ours is in whole micro-units
SHAPES = (lambda x: x**2, lambda x: 2 * sqrt(x), lambda x: 2 * x, lambda x: exp(x) - 1)


def all_in(valuations: list[float], limits: list[float], budget: float) -> Prices:
    """Return what All-in pays.

    Owners come in the order of valuation per epsilon. One sells its whole privacy budget if the money buys that of all
    sellers, its own included, at its own price per epsilon. The money is divided among sellers by epsilon.
    """
    sold = 0.0
    sells = [False] * len(limits)
    for i in sorted(range(len(limits)), key=lambda i: valuations[i] / limits[i]):
        if (sold + limits[i]) * valuations[i] / limits[i] <= budget:
            sells[i], sold = True, sold + limits[i]
    return [budget * limit / sold if seller else nan for limit, seller in zip(limits, sells, strict=True)]


def fair_query(valuations: list[float], limits: list[float], budget: float, *, as_coded: bool = False) -> Prices:
    """Return what FairQuery pays, or what its public code does.

    The k cheapest of n owners sell 1 / (n - k) each: k is the largest for which the k-th asks at most budget / k, and
    all k may sell so much. All get the lower of budget / k and what the next one asks. The public code finds k and
    the price in that way, and then takes the first k owners in the order in which they stand.
    """
    order, owners = sorted(range(len(limits)), key=lambda i: valuations[i]), len(limits)
    fits = [
        valuations[order[k - 1]] <= budget / k and min(limits[i] for i in order[:k]) >= 1 / (owners - k)
        for k in range(1, owners)
    ]
    k = [*fits, False].index(False)
    if not k:
        return [nan] * owners
    price = min(budget / k, valuations[order[k]])
    sellers = range(k) if as_coded else order[:k]
    return [price if i in sellers else nan for i in range(owners)]


def paid(name: str, valuations: list[float], limits: list[float], budget: float) -> Prices:
    """Return what the plug-in of that name pays where one buyer names all owners."""
    flmarket.load_plugin(HERE / "plugins.py")
    exact = np.rint(np.array(limits) * 1e9).astype(np.int64)
    made = flmarket.registered("mechanism", name)()
    made.one, made.limits = 10**9, lambda clients: exact[clients]
    return clear_round(made, valuations, 1000, budget).tolist()


def markets(count: int, seed: int = 1) -> Iterator[tuple[list[float], list[float], float]]:
    """Yield valuations, privacy budgets and a budget, drawn as in the public code, with amounts of six decimals."""
    random = Random(seed)
    for _ in range(count):
        limits = [random.uniform(0.1, 1.0) for _ in range(10)]
        valuations = [round(random.uniform(0.5, 1.5) * random.choice(SHAPES)(limit), 6) for limit in limits]
        yield valuations, limits, round(random.randint(1, 10) / 10 * sum(valuations), 6)


def _close(one: Prices, two: Prices) -> bool:
    return np.allclose(one, two, rtol=0, atol=CLOSE, equal_nan=True)


def _below(prices: Prices, valuations: list[float]) -> bool:
    return bool((np.array(prices) < np.array(valuations) - CLOSE).any())


def _sold(prices: Prices) -> list[bool]:
    return (~np.isnan(prices)).tolist()


def compared(count: int = 2000) -> dict[str, int]:
    """Return how the plug-ins and the public code do in random markets."""
    names = ("markets", "All-in: same prices", "All-in spends all", "All-in has a seller", "FairQuery: same prices")
    found = dict.fromkeys((*names, "FairQuery as coded has a seller", "FairQuery as coded pays below a valuation"), 0)
    for market in markets(count):
        ours, coded = paid("all-in", *market), fair_query(*market, as_coded=True)
        found["markets"] += 1
        found["All-in: same prices"] += _close(ours, all_in(*market)) and not _below(ours, market[0])
        found["All-in has a seller"] += any(_sold(ours))
        found["All-in spends all"] += any(_sold(ours)) and abs(np.nansum(ours) - market[2]) < 1e-4
        found["FairQuery: same prices"] += _close(paid("fair-query", *market), fair_query(*market))
        found["FairQuery as coded has a seller"] += any(_sold(coded))
        found["FairQuery as coded pays below a valuation"] += _below(coded, market[0])
    return found


def check_an_example_by_hand() -> None:
    """Privacy budgets of 1, 1/2 and 1/4 at 1, 2 and 4 per epsilon, and a budget of 3.

    All-in: 1 x 1 and 1.5 x 2 are within 3, 1.75 x 4 is not. The two get 3 / 1.5 = 2 per epsilon: 2 and 1.
    FairQuery: all three ask 1. One sells 1/2 for min(3, 1); two would have to sell 1 each.
    """
    valuations, limits = [1.0, 1.0, 1.0], [1.0, 0.5, 0.25]
    assert _close(paid("all-in", valuations, limits, 3.0), [2.0, 1.0, nan])
    assert _close(paid("fair-query", valuations, limits, 3.0), [1.0, nan, nan])


def check_prices_are_those_of_the_closed_forms() -> None:
    found = compared(500)
    assert found["All-in: same prices"] == found["FairQuery: same prices"] == found["markets"] == 500
    assert found["All-in spends all"] == found["All-in has a seller"] > 400


def check_who_all_in_turns_away_would_cost_too_much() -> None:
    """Of the closed form alone: sellers are paid in proportion to epsilon, and nobody else fits at its own price."""
    for valuations, limits, budget in markets(200, seed=2):
        prices = paid("all-in", valuations, limits, budget)
        sold = _sold(prices)
        assert len({round(prices[i] / limits[i], 3) for i in np.flatnonzero(sold)}) <= 1
        for i, sells in enumerate(sold):
            each = valuations[i] / limits[i]
            cheaper = sum(limits[j] for j in np.flatnonzero(sold) if valuations[j] / limits[j] < each)
            assert sells == ((cheaper + limits[i]) * each <= budget)


def check_all_in_is_not_truthful() -> None:
    """Privacy budgets of 1 and 0.1 at 1.19 and 1.2 per epsilon, and a budget of 1.2: the second sells nothing.

    If it asks 1 per epsilon, it comes first, the other one no longer fits (1.1 x 1.19 > 1.2), and it gets all of 1.2.
    """
    assert _close(paid("all-in", [1.19, 0.12], [1.0, 0.1], 1.2), [1.2, nan])
    assert _close(paid("all-in", [1.19, 0.10], [1.0, 0.1], 1.2), [nan, 1.2])


def check_the_public_code_of_fair_query_takes_the_wrong_owners() -> None:
    """Four owners of budgets 1 ask 10, 1, 2 and 3 of 6: two sell, for 3 each; the code takes the one that asks 10."""
    market = [10.0, 1.0, 2.0, 3.0], [1.0] * 4, 6.0
    assert _close(paid("fair-query", *market), [nan, 3.0, 3.0, nan])
    assert _close(fair_query(*market, as_coded=True), [3.0, 3.0, nan, nan])


def check_the_scenario_buys_what_it_pays_for() -> None:
    """In each round all the money is spent by All-in, by the epsilon that each promises: its privacy budget."""
    flmarket.load_plugin(HERE / "plugins.py")
    with TemporaryDirectory() as out:
        results = flmarket.run(flmarket.load(HERE / "scenario.toml", SHORT | {"rounds": 2}), out=out, progress=False)
        offers = results.offers
        [path] = Path(out).rglob("responses.csv")
        promised = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    limits = {i: (1 + 7 * i % 10) / 10 for i in range(10)}
    for _, round_ in offers.groupby("round"):
        bids, clients = round_.bid.tolist(), round_.client.tolist()
        prices = all_in(bids, [limits[i] for i in clients], 3.6)
        assert _close(prices, [price if price > 0 else nan for price in round_.paid])
        assert abs(round_.paid.sum() - 3.6) < CLOSE
    assert all(abs(row["promised"] - limits[row["client"]]) < CLOSE for row in promised)


if __name__ == "__main__":
    for name, number in compared().items():
        print(f"{name}: {number:,}")
