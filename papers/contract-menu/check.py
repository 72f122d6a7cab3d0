"""The optimal menu, its formulas written apart from the plug-ins: nobody gains by another contract, nor by none.

``python papers/contract-menu/check.py`` prints the table of README.md.
"""

from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import flmarket
from flmarket.testing import MenuDeviation, check_menu, menu_deviations

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "market.options.kind": "screening", "training.backend": "surrogate"}
"""Settings with which the scenario plays in a second."""

COSTS, VALUE = (2.0, 3.0, 5.0), 4.0
ROUNDING = 1e-5  # money: the larger contracts have a few micro-units more


QUADRATIC = flmarket.registered("response", "quadratic")()


def plugins() -> ModuleType:
    return flmarket.load_plugin(HERE / "plugins.py")


def profit(quantity: np.ndarray, payment: np.ndarray, shares: list[float], value: float) -> float:
    return float(np.average(value * quantity - payment, weights=shares))


def types(count: int, seed: int = 1) -> list[tuple[list[float], list[float], float]]:
    """Return costs, shares and a value of menus whose quantities rise as costs fall (a regular distribution)."""
    random, found = Random(seed), []
    while len(found) < count:
        costs = sorted(random.uniform(1, 5) for _ in range(random.randint(2, 5)))
        shares = [random.uniform(0.5, 1.5) for _ in costs]
        below = np.cumsum(shares) - shares
        virtual = np.array(costs) + below / shares * np.diff(costs, prepend=costs[0])
        if (np.diff(virtual) > 0).all():
            found.append((costs, shares, random.uniform(0.5, 2)))
    return found


def played(kind: str, seeds: int = 1) -> pd.DataFrame:
    """Return the contracts that clients took in played markets: their types, quantities and pay."""
    flmarket.load_plugin(HERE / "plugins.py")
    rows = []
    with TemporaryDirectory() as out:
        scenario = flmarket.load(HERE / "scenario.toml", SHORT | {"market.options.kind": kind})
        flmarket.run(scenario, seeds=seeds, out=out, progress=False)
        for place in sorted(Path(out).glob("*/*/seed-*")):
            keys = ["round", "client"]
            tables = [pd.read_csv(place / f"{name}.csv").set_index(keys) for name in ("responses", "clients", "offers")]
            answers, clients, offers = tables
            rows.append(
                pd.DataFrame(
                    {
                        "seed": place.name, "cost": clients["bid"], "quantity": answers["promised"],
                        "paid": offers["paid"].fillna(0.0), "kept": clients["profit"],
                    }
                )
            )  # fmt: skip
    return pd.concat(rows).reset_index()


def check_an_example_by_hand() -> None:
    """Costs 2, 3, 5, equally likely, a value of 4.

    Virtual costs are 2, 3 + 1 = 4 and 5 + 2 * 2 = 9, so quantities 4/4, 4/8 and 4/18. The third type is paid its cost,
    5 * 4/81 = 20/81; the second its cost, 3/4, and 2 * 4/81 = 8/81; the first 2, that and 1 * 1/4.
    """
    quantity, payment = plugins().contracts(COSTS, (1, 1, 1), VALUE)
    assert np.allclose(quantity, [1, 1 / 2, 2 / 9])
    assert np.allclose(payment, [2 + 1 / 4 + 8 / 81, 3 / 4 + 8 / 81, 20 / 81])
    assert np.isclose(profit(quantity, payment, [1, 1, 1], VALUE), 4 * (1 / 2 + 1 / 4 + 1 / 9) / 3)


def check_the_menu_is_incentive_compatible_and_individually_rational() -> None:
    for costs, shares, value in types(100):
        menu = plugins().ContractMenu(costs=costs, shares=shares, value=value)
        assert all(it.gain < ROUNDING for it in menu_deviations(menu, QUADRATIC, costs))
        quantity, payment = plugins().contracts(costs, shares, value)
        kept = payment - np.array(costs) * quantity**2
        assert abs(kept[-1]) < 1e-9  # the dearest type keeps nothing
        assert (np.diff(kept) < 0).all()  # the others more, the cheaper they are


def check_no_menu_earns_the_server_more() -> None:
    """A solver that knows only both promises finds the same profit."""
    for costs, shares, value in types(15):
        n, cost = len(costs), np.array(costs)

        def slack(menu: np.ndarray, n: int = n, cost: np.ndarray = cost) -> list[float]:
            kept = menu[n:, None] - cost * menu[:n, None] ** 2  # [contract, type]
            return [*np.diag(kept), *(kept[i, i] - kept[j, i] for i, j in product(range(n), repeat=2) if i != j)]

        best = minimize(
            lambda menu, n=n, shares=shares, value=value: -profit(menu[:n], menu[n:], shares, value),
            np.concatenate([np.linspace(0.2, 0.1, n), np.linspace(0.5, 0.3, n)]),
            constraints={"type": "ineq", "fun": slack}, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        assert best.success
        assert abs(-best.fun - profit(*plugins().contracts(costs, shares, value), shares, value)) < 1e-6


def check_menus_that_are_broken_on_purpose_have_witnesses() -> None:
    """Each type's best contract at its cost: the others' are worth more to it. A little less pay: the last declines."""
    found = menu_deviations(plugins().ContractMenu(kind="first-best"), QUADRATIC, COSTS)
    assert {(it.type, it.contract) for it in found} == {(0, 1), (0, 2), (1, 2)}
    assert np.isclose(found[0].gain, 0.8 - 2 * 0.4**2, atol=1e-5)
    short = plugins().ContractMenu()
    check_menu(short, QUADRATIC, COSTS)
    short.payment = short.payment - [0, 0, 10_000]
    [last] = menu_deviations(short, QUADRATIC, COSTS)
    assert (last.type, last.contract, round(last.gain, 4)) == (2, None, 0.01)


def check_clients_of_a_played_market_take_the_contract_of_their_type() -> None:
    market = played("screening")
    quantity, payment = plugins().contracts(COSTS, (1, 1, 1), VALUE)
    assert set(market["cost"]) == {*COSTS}
    for cost, own in market.groupby("cost"):
        place = COSTS.index(cost)
        assert (own["quantity"] - quantity[place]).abs().max() <= 1e-6
        assert (own["paid"] - payment[place]).abs().max() <= 1e-4
    assert (market["kept"] >= 0).all()


def check_in_a_played_market_the_broken_menu_is_gamed() -> None:
    """All take the contract that was made for the dearest type."""
    market = played("first-best")
    assert (market["quantity"] - 0.4).abs().max() <= 1e-6


def kept_otherwise(
    kind: str, menus: Iterable[tuple[list[float], list[float], float]]
) -> tuple[int, list[MenuDeviation]]:
    """Return how many types there are on menus of a kind, and what those do best that have better than their own."""
    tried, found = 0, []
    for costs, shares, value in menus:
        menu = plugins().ContractMenu(kind=kind, costs=costs, shares=shares, value=value)
        best = {it.type: it for it in reversed(menu_deviations(menu, QUADRATIC, costs)) if it.gain > ROUNDING}
        tried, found = tried + len(costs), [*found, *best.values()]
    return tried, found


CLAIMS = [
    {
        "rule": "contract-menu",
        "options": {"kind": kind},
        "claimed": claimed,
        "by": by,
        "menus": partial(kept_otherwise, kind, types(100)),
    }
    for kind, claimed, by in (
        (
            "screening",
            ["incentive compatibility", "individual rationality"],
            "the theory of screening, not a paper that was read",
        ),
        ("first-best", [], "broken on purpose"),
        ("informed", [], "made for types that are known, not private"),
    )
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""


if __name__ == "__main__":
    for name in plugins().KINDS:
        market = played(name, seeds=10)
        left = (VALUE * market["quantity"] - market["paid"]).groupby(market["seed"]).mean()
        kept = market.groupby("seed")["kept"].mean()
        by_type = (VALUE * market["quantity"] - market["paid"]).groupby(market["cost"]).mean()
        print(f"{name}: {flmarket.mean_interval(left).text('.3f')}, n {len(left)};", end=" ")
        print(f"equal shares {by_type.mean():.4f}; clients keep {kept.mean():.3f}")
