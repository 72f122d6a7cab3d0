"""RRAFL, its rule written anew from reading, against the plug-in; what two public codes pay; and the table.

``python papers/rrafl/check.py RUNS...`` prints the rows of README.md from the runs that it names.
"""

import sys
from collections import defaultdict
from math import nan
from pathlib import Path
from random import Random

import numpy as np

import flmarket
from flmarket.testing import clear_round

Prices = list[float]  # of each client; NaN for those that do not serve

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "market.options.reputation": "record"}
"""Settings with which the scenario plays in a second."""

_FIXED = "reputations are fixed; the rule is second-hand"
_RECORD = {
    "options": {"reputation": "record"},
    "rounds": 3,
    "markets": 20,
    "note": "the reputation is an interpretation; two misreports a client, for odd and for even rounds",
}
_ABSTRACT = {"claimed": ["truthfulness", "individual rationality", "budget feasibility"], "by": "abstract"}
CLAIMS = [
    {"rule": "rrafl", "shape": {"services": 1}, "note": _FIXED, **_ABSTRACT},
    {"rule": "rrafl", "note": _FIXED, **_ABSTRACT},
    {"rule": "rrafl", "shape": {"services": 1}, **_RECORD, **_ABSTRACT},
    {"rule": "rrafl", **_RECORD, **_ABSTRACT},
    {"rule": "rrafl-next-number", "by": "a third party's code"},
    {"rule": "rrafl-own-bid", "by": "a public file that plays CARE-CO"},
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

CLOSE = 1e-4  # money; ours is in whole micro-units
BIDS, REPUTATIONS = [2.0, 3.0, 4.0, 6.0], [1.0, 0.5, 1.6, 0.9]  # 2, 6, 2.5 and 6.667 a unit


def paid(mechanism: str, bids: list[float], worth: list[float], budget: float) -> Prices:
    """Return what a mechanism pays where one service names all clients, at a thousand times their reputations."""
    flmarket.load_plugin(HERE / "plugins.py")
    return clear_round(mechanism, bids, 1000 * np.array(worth), budget).tolist()


def rrafl(bids: list[float], worth: list[float], budget: float) -> Prices:
    """Return what RRAFL pays: the most winners that can each be paid, per reputation, what the first loser asks."""
    order = sorted(range(len(bids)), key=lambda i: bids[i] / worth[i])
    for n in range(len(bids) - 1, 0, -1):
        unit = bids[order[n]] / worth[order[n]]
        if unit * sum(worth[i] for i in order[:n]) <= budget:
            return [worth[i] * unit if i in order[:n] else nan for i in range(len(bids))]
    return [nan] * len(bids)


def _close(one: Prices, two: Prices) -> bool:
    return np.allclose(one, two, rtol=0, atol=CLOSE, equal_nan=True)


def check_an_example_by_hand() -> None:
    """The order is 0, 2, 1, 3. Of 20: 6 x 2.6 = 15.6 fits, 6.667 x 3.1 = 20.67 does not, but of 21 it does."""
    for budget, prices in (
        (2.4, [nan] * 4),
        (5.0, [2.5, nan, nan, nan]),
        (20.0, [6.0, nan, 9.6, nan]),
        (21.0, [20 / 3, 10 / 3, 32 / 3, nan]),
    ):
        assert _close(rrafl(BIDS, REPUTATIONS, budget), prices)
        assert _close(paid("rrafl", BIDS, REPUTATIONS, budget), prices)


def check_proportional_share_hires_more_of_the_same_budget() -> None:
    """Of 20, three are each paid their share, 20 / 3.1 a unit, where RRAFL hires two."""
    prices = [20 / 3.1 * worth for worth in REPUTATIONS[:3]]
    assert _close(paid("proportional-share", BIDS, REPUTATIONS, 20.0), [*prices, nan])


def check_winners_and_prices_are_those_of_the_rule() -> None:
    random, somebody = Random(1), 0
    for _ in range(300):
        count = random.randint(1, 12)
        bids, worth = ([random.uniform(low, 3) for _ in range(count)] for low in (0.8, 0.1))
        prices = rrafl(bids, worth, budget := random.uniform(1, 20))
        assert _close(paid("rrafl", bids, worth, budget), prices)
        assert np.nansum(prices) <= budget + CLOSE
        somebody += not np.isnan(prices).all()
    assert somebody > 200


def check_no_bid_beats_the_truth() -> None:
    """Reputations are fixed. A client's gain is its price less its cost, 0 if it does not serve."""
    random = Random(2)
    for _ in range(100):
        count = random.randint(2, 6)
        costs, worth = ([random.uniform(low, 3) for _ in range(count)] for low in (0.8, 0.1))
        budget, client = random.uniform(1, 20), random.randrange(count)
        honest = np.nan_to_num(rrafl(costs, worth, budget)[client] - costs[client])
        for _ in range(20):
            asked = [*costs[:client], random.uniform(0, 9), *costs[client + 1 :]]
            assert np.nan_to_num(rrafl(asked, worth, budget)[client] - costs[client]) <= honest + CLOSE


def check_the_public_codes_pay_otherwise() -> None:
    """Of 20: the next number's ask, at least the own bid, 3 + 6 + 4 + 6 = 19; and own bids, 2 + 4 + 3 + 6 = 15."""
    assert paid("rrafl-next-number", BIDS, REPUTATIONS, 20.0) == [3.0, 4.0, 6.0, 6.0]
    assert paid("rrafl-own-bid", BIDS, REPUTATIONS, 20.0) == BIDS
    assert paid("rrafl-own-bid", [2.5, *BIDS[1:]], REPUTATIONS, 20.0)[0] == 2.5  # who asks more is paid more


def check_reputations_are_those_of_the_curve() -> None:
    """x = (.4 p - .6 f) / (.4 p + .6 f), and exp(-exp(-5.5 x)) of it."""
    reputation = flmarket.load_plugin(HERE / "plugins.py").reputation
    for passed, failed, expected in ((1, 0, 0.995922), (3, 1, 0.852246), (3, 2, 0.367879), (1, 1, 0.049580)):
        assert abs(reputation(np.array([passed]), np.array([failed]))[0] - expected) < 1e-5


def table(folders: list[str]) -> None:
    """Print for each setting means over seeds: how many are hired, how many of them leavers, what arrives, its cost."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in flmarket.read(*folders).runs:
        market, offers = run.setting.scenario.market, run.offers
        hired = offers[offers.outcome.isin(("served", "dropped"))]
        arrived = hired[hired.outcome == "served"]
        of = found[f"{market.mechanism} {market.options}"]
        of["hired a round"].append(len(hired) / 50)
        of["leavers' share of them, %"].append(100 * float((hired.client >= 10).mean()))
        of["arrived a round"].append(len(arrived) / 50)
        of["money for an update that arrived"].append(float(arrived.paid.sum()) / 1e6 / len(arrived))
    for name, columns in found.items():
        means = {column: flmarket.mean_interval(values).text(".2f") for column, values in columns.items()}
        print(name, means, len(columns["arrived a round"]))


if __name__ == "__main__":
    flmarket.load_plugin(HERE / "plugins.py")
    table(sys.argv[1:])
