"""All-in and FairQuery, their rules written anew from reading, against the plug-ins and their closed forms.

``python papers/fl-market/check.py`` prints the numbers of README.md, and with folders of runs as its arguments their
final accuracies, and by how much those of each are above those of the first, paired by seed.
"""

import runpy
import sys
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
SHORT = {"sweep": {}, "market.options.rate": 0.5}
"""Settings with which the scenario plays in a second."""

CLAIMS = [
    {"rule": "all-in", "by": "the text is not read", "note": "owners sell their limits, for which alone the menu pays"},
    {"rule": "fair-query", "by": "the text is not read; the public code adapts the rule of Ghosh and Roth"},
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

CLOSE = 1e-5  # money; ours is in whole micro-units
SHAPES = (lambda x: x**2, lambda x: 2 * sqrt(x), lambda x: 2 * x, lambda x: exp(x) - 1)


def all_in(valuations: list[float], limits: list[float], sizes: list[int], budget: float) -> Prices:
    """Return what All-in pays.

    An owner sells its whole privacy budget for each of its rows. Owners come in the order of valuation per epsilon and
    row. One sells if the money buys that of all sellers, its own included, at its own price. The money is divided among
    sellers by epsilon and rows.
    """
    sold, sells = 0.0, [False] * len(limits)
    amounts = [limit * size for limit, size in zip(limits, sizes, strict=True)]
    for i in sorted(range(len(limits)), key=lambda i: valuations[i] / amounts[i]):
        if (sold + amounts[i]) * valuations[i] / amounts[i] <= budget:
            sells[i], sold = True, sold + amounts[i]
    return [budget * amount / sold if seller else nan for amount, seller in zip(amounts, sells, strict=True)]


def fair_query(valuations: list[float], limits: list[float], budget: float) -> Prices:
    """Return what FairQuery pays.

    The k cheapest of n owners sell L / (n - k) each, L being the largest privacy budget of all. As k counts up, the
    k-th must ask at most budget / k, and all k must be able to sell so much; where that fails, it stops. All get the
    lower of budget / k and what the next one asks.
    """
    order, owners = sorted(range(len(limits)), key=lambda i: valuations[i]), len(limits)
    fits = [
        valuations[order[k - 1]] <= budget / k and min(limits[i] for i in order[:k]) >= max(limits) / (owners - k)
        for k in range(1, owners)
    ]
    k = [*fits, False].index(False)
    price = min(budget / k, valuations[order[k]]) if k else nan
    return [price if i in order[:k] else nan for i in range(owners)]


Market = tuple[list[float], list[float], list[int], float]  # valuations, privacy budgets, sizes, money


def paid(name: str, valuations: list[float], limits: list[float], sizes: list[int], budget: float) -> Prices:
    """Return what the plug-in of that name pays where one buyer names all owners."""
    flmarket.load_plugin(HERE / "plugins.py")
    exact = np.rint(np.array(limits) * 1e9).astype(np.int64)
    made = flmarket.registered("mechanism", name)()
    made.limits = lambda clients: exact[clients]
    return clear_round(made, valuations, 1e6, budget, data_size=np.array([sizes])).tolist()


def markets(count: int, seed: int = 1, rate: float | None = None) -> Iterator[Market]:
    """Yield markets drawn as in the public code, with amounts of six decimals; the money, by default U(0.1, 2) of what
    the ten owners want, may be a part of that.
    """
    random = Random(seed)
    for _ in range(count):
        limits = [random.uniform(0.5, 2.0) for _ in range(10)]
        sizes = [10 + int(116 * random.lognormvariate(0, 2) / exp(2)) for _ in limits]
        each = [random.uniform(0.5, 1.5) * random.choice(SHAPES)(limit) for limit in limits]
        valuations = [round(one * size, 6) for one, size in zip(each, sizes, strict=True)]
        yield valuations, limits, sizes, round((rate or random.uniform(0.1, 2.0)) * sum(valuations), 6)


def _close(one: Prices, two: Prices) -> bool:
    return np.allclose(one, two, rtol=0, atol=CLOSE, equal_nan=True)


def _below(prices: Prices, valuations: list[float]) -> bool:
    return bool((np.array(prices) < np.array(valuations) - CLOSE).any())


def _sold(prices: Prices) -> list[bool]:
    return (~np.isnan(prices)).tolist()


def compared(count: int = 2000) -> dict[str, int]:
    """Return how the plug-ins do in random markets."""
    names = "markets", "All-in: same prices", "All-in spends all", "All-in has a seller", "FairQuery: same prices"
    found = dict.fromkeys((*names, "FairQuery: never below a valuation"), 0)
    for market in markets(count):
        valuations, limits, _, money = market
        ours, fair = paid("all-in", *market), paid("fair-query", *market)
        found["markets"] += 1
        found["All-in: same prices"] += _close(ours, all_in(*market)) and not _below(ours, valuations)
        found["All-in has a seller"] += any(_sold(ours))
        found["All-in spends all"] += any(_sold(ours)) and abs(np.nansum(ours) - money) < 1e-4
        found["FairQuery: same prices"] += _close(fair, fair_query(valuations, limits, money))
        found["FairQuery: never below a valuation"] += not _below(fair, valuations)
    return found


def sellers(rate: float, count: int = 1000) -> tuple[float, float, float, float]:
    """Return, of All-in and of FairQuery, how many owners sell, and their epsilon in all; means of random markets."""
    found = np.zeros(4)
    for valuations, limits, sizes, budget in markets(count, seed=3, rate=rate):
        sold = np.array(_sold(all_in(valuations, limits, sizes, budget)))
        fair = sum(_sold(fair_query(valuations, limits, budget)))
        found += sold.sum(), (sold * limits).sum(), fair, fair * max(limits) / (len(limits) - fair)
    return tuple(found / count)


def check_an_example_by_hand() -> None:
    """Privacy budgets of 1, 1/2 and 1/4 at 1, 2 and 4 per epsilon, each for one row, and money of 3.

    All-in: 1 x 1 and 1.5 x 2 are within 3, 1.75 x 4 is not. The two get 3 / 1.5 = 2 per epsilon: 2 and 1.
    FairQuery: all three ask 1. One sells 1/2 for min(3, 1); two would have to sell 1 each.
    """
    market = [1.0, 1.0, 1.0], [1.0, 0.5, 0.25], [1, 1, 1], 3.0
    assert _close(paid("all-in", *market), [2.0, 1.0, nan])
    assert _close(paid("fair-query", *market), [1.0, nan, nan])


def check_all_in_counts_rows() -> None:
    """Two owners of privacy budgets 1, of 1 and 3 rows, want 1 for a row: they get 2 and 6 of a money of 8."""
    assert _close(paid("all-in", [1.0, 3.0], [1.0, 1.0], [1, 3], 8.0), [2.0, 6.0])


def check_fair_query_buys_from_the_cheapest_wherever_they_stand() -> None:
    """Four owners of privacy budgets 1 ask 10, 1, 2 and 3 of 6: two sell, for 3 each."""
    assert _close(paid("fair-query", [10.0, 1.0, 2.0, 3.0], [1.0] * 4, [1] * 4, 6.0), [nan, 3.0, 3.0, nan])


def check_prices_are_those_of_the_closed_forms() -> None:
    found = compared(500)
    assert found["All-in: same prices"] == found["FairQuery: same prices"] == found["markets"] == 500
    assert found["All-in spends all"] == found["All-in has a seller"] > 400


def check_who_all_in_turns_away_would_cost_too_much() -> None:
    """Of the closed form alone: sellers are paid in proportion to what they sell, and nobody else fits at its price."""
    for valuations, limits, sizes, budget in markets(200, seed=2):
        prices = paid("all-in", valuations, limits, sizes, budget)
        amounts, sold = np.array(limits) * sizes, np.array(_sold(prices))
        per = np.array(valuations) / amounts
        assert np.allclose((np.array(prices) / amounts)[sold], budget / amounts[sold].sum(), atol=1e-4)
        for i in range(len(sizes)):
            cheaper = amounts[sold & (per < per[i])].sum()
            assert sold[i] == ((cheaper + amounts[i]) * per[i] <= budget)


def check_all_in_is_not_truthful() -> None:
    """Privacy budgets of 1 and 0.1 at 1.19 and 1.2 per epsilon, a row each, and money of 1.2: the second sells nothing.

    If it asks 1 per epsilon, it comes first, the other one no longer fits (1.1 x 1.19 > 1.2), and it gets all of 1.2.
    """
    assert _close(paid("all-in", [1.19, 0.12], [1.0, 0.1], [1, 1], 1.2), [1.2, nan])
    assert _close(paid("all-in", [1.19, 0.10], [1.0, 0.1], [1, 1], 1.2), [nan, 1.2])


def check_the_optimal_weights_of_two_by_hand() -> None:
    """Sizes 1/2 and 1/2, variances 4 and 12: w and 1 - w, and ``sum(|w - s|)`` is 2 w - 1.

    ``4 w^2 + 12 (1 - w)^2 + (2 w - 1)^2`` is least where ``8 w - 24 (1 - w) + 4 (2 w - 1) = 0``: at w = 0.7.
    """
    optimal = runpy.run_path(str(HERE / "plugins.py"))["optimal"]
    assert np.allclose(optimal(np.array([0.5, 0.5]), np.array([4.0, 12.0])), [0.7, 0.3], atol=1e-9)


def check_no_other_weights_are_better() -> None:
    optimal = runpy.run_path(str(HERE / "plugins.py"))["optimal"]
    random = np.random.default_rng(1)

    def error(weights: np.ndarray, sizes: np.ndarray, variances: np.ndarray) -> float:
        return (variances * weights**2).sum() + np.abs(weights - sizes).sum() ** 2

    for _ in range(100):
        sizes, variances = random.dirichlet(np.ones(6)), random.uniform(0.1, 100, 6)
        best = optimal(sizes, variances)
        assert abs(best.sum() - 1) < 1e-9
        for scale in (1e-1, 1e-3):
            for move in scale * random.standard_normal((50, 6)):
                other = best + move - move.mean()
                assert error(other, sizes, variances) >= error(best, sizes, variances) - 1e-9


def check_the_scenario_buys_what_it_pays_for() -> None:
    """In each round All-in spends all the money, by what each owner promises: its privacy budget, for all its rows."""
    flmarket.load_plugin(HERE / "plugins.py")
    with TemporaryDirectory() as out:
        results = flmarket.run(flmarket.load(HERE / "scenario.toml", SHORT | {"rounds": 2}), out=out, progress=False)
        offers = results.offers
        [path] = Path(out).rglob("responses.csv")
        promised = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    limits = {i: (575 + 150 * (7 * (i // 25) % 10)) / 1000 for i in range(1000)}
    for _, round_ in offers.groupby("round"):
        bids, clients = round_.bid.tolist(), round_.client.tolist()
        money = sum(bids) / 2
        prices = all_in(bids, [limits[i] for i in clients], round_.data_size.tolist(), money)
        assert len(bids) == 10
        assert np.allclose(prices, [price if price > 0 else nan for price in round_.paid], atol=1e-4, equal_nan=True)
        assert abs(round_.paid.sum() - money) < 1e-4
    assert all(abs(2 * row["promised"] - limits[row["client"]]) < CLOSE for row in promised)


def accuracies(folders: list[str]) -> Iterator[str]:
    """Yield a line for each folder and rate: the final accuracy, and its difference from the first folder's, %."""
    flmarket.load_plugin(HERE / "plugins.py")
    last = [(rounds := flmarket.read(folder).rounds)[rounds["round"] == rounds["round"].max()] for folder in folders]
    final = [100 * rounds.set_index(["market.options.rate", "seed"])["test_accuracy"] for rounds in last]
    for folder, each in zip(folders, final, strict=True):
        for rate in each.index.levels[0]:
            numbers = each[rate], (each - final[0])[rate]
            said = [
                f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]" for one in map(flmarket.mean_interval, numbers)
            ]
            yield f"{folder}, {rate}: {said[0]}" + (f", less {folders[0]}: {said[1]}" if each is not final[0] else "")


def numbers() -> Iterator[str]:
    """Yield the numbers of README.md that need no runs."""
    for name, number in compared().items():
        yield f"{name}: {number:,}"
    for rate in (0.1, 0.5, 1.0, 2.0):
        one, its, other, theirs = sellers(rate)
        yield f"money {rate}: All-in {one:.1f} sellers, epsilon {its:.2f}; FairQuery {other:.1f}, epsilon {theirs:.2f}"


if __name__ == "__main__":
    for line in accuracies(sys.argv[1:]) if sys.argv[1:] else numbers():
        print(line)
