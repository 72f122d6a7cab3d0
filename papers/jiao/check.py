"""The auction by sets, written anew from the formula, against the plug-in; and the tables of README.md.

``python papers/jiao/check.py`` prints the tables.
"""

from collections.abc import Iterable
from itertools import combinations
from math import exp, nan
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import flmarket
from flmarket import mean_interval
from flmarket.testing import clear_round

HERE = Path(__file__).parent
SHORT: dict[str, Any] = {}
"""Settings with which the scenario plays in a second: it does."""

CLAIMS = [
    {
        "rule": "set-auction",
        "by": "the abstract's claim is of a rule that could not be read",
        "shape": {"services": 1, "budgets": False},
        "note": "of services nothing follows: a set is worth what the rule says, and to them what each client is",
    }
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

THEIRS = {30: 52.3, 50: 52.0, 70: 53.0, 90: 51.7, 110: 52.1}
"""The welfare at which the lines of the public code's figure end, by the number of clients; each is of one market."""

LABELS = np.array([987, 1124, 993, 1022, 974, 903, 986, 1044, 975, 992]) / 10000


class Market(NamedTuple):
    size: np.ndarray
    emd: np.ndarray
    cost: np.ndarray


def worth(size: float, emd: float) -> float:
    alpha = 0.993 * exp(-(((emd + 0.31) / 1.743) ** 2))
    return 100 * (alpha - 0.361 * exp(-4.348 * (0.001 * size) ** alpha))


def welfare(market: Market, those: Iterable[int]) -> float:
    """Return what a set is worth, less its clients' costs and 0.25 for each after the first; 0 of nobody."""
    chosen = [*those]
    if not chosen:
        return 0.0
    rest = 0.25 * (len(chosen) - 1) + float(market.cost[chosen].sum())
    return worth(float(market.size[chosen].sum()), float(market.emd[chosen].mean())) - rest


def greedy(market: Market) -> list[int]:
    """Return the set that grows by who adds the most welfare, while somebody does."""
    chosen: list[int] = []
    while others := [i for i in range(len(market.size)) if i not in chosen]:
        best = max(others, key=lambda i: welfare(market, [*chosen, i]))
        if welfare(market, [*chosen, best]) <= welfare(market, chosen):
            break
        chosen.append(best)
    return chosen


def paid(market: Market, bids: np.ndarray | None = None) -> np.ndarray:
    """Return what the plug-in pays each client; NaN for those that are not taken."""
    made = flmarket.load_plugin(HERE / "plugins.py").SetAuction()
    seen = {"data_size": market.size[None], "emd": market.emd[None]}
    return clear_round(made, market.cost if bids is None else bids, 1000.0, 1e6, **seen)


def drawn(random: Random, clients: int, dearest: float = 20) -> Market:
    pick = lambda those: np.array([random.choice(those) for _ in range(clients)])  # noqa: E731
    cost = np.array([round(random.uniform(0, dearest), 6) for _ in range(clients)])
    return Market(pick([100, 200, 400]), pick([0.4, 0.6, 0.8, 1.0]), cost)


def of_the_public_code(rng: np.random.Generator, clients: int) -> Market:
    """Return a market as the public code draws one: 2 to 10 images each, EMDs cut off at 1.2, and its three costs."""
    collecting, computing = rng.uniform(1e-5, 1e-4, (2, clients))
    sending, gain, channels = (
        rng.uniform(1e-2, 0.1, clients),
        rng.uniform(1e6, 1e7, clients),
        rng.integers(2, 7, clients),
    )
    size = rng.integers(2, 11, clients)
    labels = [np.bincount(rng.choice(10, n, p=LABELS / LABELS.sum()), minlength=10) / n for n in size]
    emd = np.array([np.abs(mix - LABELS).sum() for mix in labels]).clip(max=1.2)
    band, bits = 20e6 * channels, 30e3
    energy = (2 ** (bits / band) - 1) * band * 0.5 / (gain * bits) * 10
    return Market(size, emd, size * collecting + size * 5 * 10 * 0.5 * computing + energy * sending)


def check_what_data_are_worth_is_the_dqi_of_jiao() -> None:
    """By hand, as docs/decisions/dqi.md has it for dqi = "jiao"."""
    plugins = flmarket.load_plugin(HERE / "plugins.py")
    for size, emd, expected in ((100, 0.4, 0.6483), (100, 1.0, 0.4541), (400, 0.4, 0.7929), (400, 0.6, 0.7151)):
        assert abs(worth(size, emd) / 100 - expected) < 5e-5
        assert abs(plugins.phi(size, emd) - expected) < 5e-5


def check_an_example_by_hand() -> None:
    """Three clients of 100 images and EMD 0.4 ask 1, 2 and 6. One is worth 64.83, two 72.37, three 76.68.

    The first is taken. The second adds 72.37 - 64.83 - 0.25 = 7.29, which is more than 2. The third would add 4.05,
    less than 6. Without the first, the second is taken, and then the third, which leaves 7.29 - 6 = 1.29: so the first
    is taken at up to 7.29 - 1.29 = 6, and so is the second.
    """
    market = Market(np.full(3, 100), np.full(3, 0.4), np.array([1.0, 2.0, 6.0]))
    values = [worth(100 * n, 0.4) for n in (1, 2, 3)]
    assert np.allclose(values, [64.83, 72.37, 76.68], atol=0.01)
    first, second = paid(market)[:2].tolist()
    assert greedy(market) == [0, 1]
    assert abs(first - 6) < 1e-5
    assert abs(second - 6) < 1e-5
    assert np.isnan(paid(market)[2])


def check_the_set_is_that_of_the_rule() -> None:
    random = Random(1)
    for _ in range(60):
        market = drawn(random, random.randint(1, 12))
        assert np.flatnonzero(~np.isnan(paid(market))).tolist() == sorted(greedy(market))


def check_prices_are_the_highest_bids_that_win() -> None:
    random = Random(2)
    for _ in range(15):
        market = drawn(random, random.randint(2, 8))
        prices = paid(market)
        for i in np.flatnonzero(~np.isnan(prices)):
            assert prices[i] >= market.cost[i]
            for change, wins in ((-0.001, True), (0.001, False)):
                bids = market.cost.copy()
                bids[i] = max(prices[i] + change, 0)
                assert np.isnan(paid(market, bids)[i]) != wins


def gains(markets: int, tries: int) -> list[float]:
    """Return what each client gains at most by another bid, of ``tries``, while the others ask their costs."""
    random, found = Random(3), []
    for _ in range(markets):
        market = drawn(random, random.randint(2, 8))
        truth = np.nan_to_num(paid(market) - market.cost)
        for i in range(len(market.cost)):
            most = -nan
            for _ in range(tries):
                bids = market.cost.copy()
                bids[i] = random.uniform(0, 40)
                most = np.fmax(most, np.nan_to_num(paid(market, bids)[i] - market.cost[i]))
            found.append(float(most - truth[i]))
    return found


def check_no_bid_beats_the_truth() -> None:
    assert max(gains(15, 5)) < 1e-5


def best(market: Market) -> float:
    """Return the most welfare of any set."""
    everybody = range(len(market.size))
    return max(welfare(market, those) for n in range(len(market.size) + 1) for those in combinations(everybody, n))


def _text(values: Any, digits: int = 1) -> str:
    return mean_interval(values).text(f".{digits}f")


def main() -> None:
    found = gains(100, 20)
    print("gain:", sum(gain > 1e-5 for gain in found), "of", len(found))
    random = Random(4)
    for dearest in (1, 5, 20):
        markets = [drawn(random, 12, dearest) for _ in range(100)]
        shares = [100 * welfare(market, greedy(market)) / best(market) for market in markets]
        over = [float(np.nansum(paid(it)) / it.cost[greedy(it)].sum()) for it in markets]
        print(f"costs up to {dearest}: % of the best welfare {_text(shares)}, paid per cost {_text(over)}")
    for clients, theirs in THEIRS.items():
        rng = np.random.default_rng(clients)
        markets = [of_the_public_code(rng, clients) for _ in range(100)]
        sets = [greedy(market) for market in markets]
        ours = np.array([welfare(market, those) for market, those in zip(markets, sets, strict=True)])
        free = [it._replace(cost=0 * it.cost) for it in markets]
        same = sum({*those} == {*greedy(market)} for market, those in zip(free, sets, strict=True))
        cost = [100 * market.cost[those].sum() / of for market, those, of in zip(markets, sets, ours, strict=True)]
        low, high = np.quantile(ours, [0.025, 0.975])
        print(
            f"{clients}: theirs {theirs}, greedy {_text(ours)}, 95 % in [{low:.1f}, {high:.1f}], "
            f"costs {_text(cost, 3)} %, {_text([len(those) for those in sets])} clients, "
            f"the same set without costs in {same}"
        )


if __name__ == "__main__":
    main()
