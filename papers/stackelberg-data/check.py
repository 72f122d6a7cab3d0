"""The contest for a shared reward: its closed form, written apart from the plug-ins, against what clients give.

``python papers/stackelberg-data/check.py`` prints the table of README.md.
"""

from math import log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
import pandas as pd

import flmarket

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "training.backend": "surrogate"}
"""Settings with which the scenario plays in a second."""


CLAIMS = [
    {
        "rule": "shared-reward",
        "markets": 20,
        "by": "the game is ours",
        "note": "check.py attacks the choice of data; here clients do all of the work, and misreport what it costs",
    }
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""


def plugins() -> ModuleType:
    return flmarket.load_plugin(HERE / "plugins.py")


def equilibrium(reward: float, unit: list[float]) -> list[float]:
    """Return the data that clients give: n of them take part, ``(n-1) R / sum(c) (1 - (n-1) c_i / sum(c))`` each.

    Those take part, from the lowest cost on, whose cost is below ``sum(c) / (n-1)`` with them among the n.
    """
    order = sorted(range(len(unit)), key=lambda i: unit[i])
    n, total = 2, unit[order[0]] + unit[order[1]]
    while n < len(order) and unit[order[n]] < (total + unit[order[n]]) / n:
        n, total = n + 1, total + unit[order[n]]
    given = [0.0] * len(unit)
    for i in order[:n]:
        given[i] = (n - 1) * reward / total * (1 - (n - 1) * unit[i] / total)
    return given


def utility(reward: float, unit: list[float], given: list[float], i: int) -> float:
    return reward * given[i] / sum(given) - unit[i] * given[i]


def games(count: int, seed: int = 1) -> list[tuple[float, list[float]]]:
    random = Random(seed)
    return [
        (random.uniform(1, 100), [random.uniform(0.2, 3) for _ in range(random.randint(2, 12))]) for _ in range(count)
    ]


def played(reward: float, seeds: int = 1) -> pd.DataFrame:
    """Return what each client gave and was paid in each round of played markets, beside the closed form."""
    flmarket.load_plugin(HERE / "plugins.py")
    settings = SHORT | {"services.server.policy_options.reward": reward}
    rows = []
    with TemporaryDirectory() as out:
        results = flmarket.run(flmarket.load(HERE / "scenario.toml", settings), seeds=seeds, out=out, progress=False)
        paid = results.offers.set_index(["seed", "round", "client"])["paid"]
        for place in sorted(Path(out).glob("*/*/seed-*")):
            seed = int(place.name[-4:])
            answers, clients = pd.read_csv(place / "responses.csv"), pd.read_csv(place / "clients.csv")
            for number, answer in answers.groupby("round"):
                bids = clients[clients["round"] == number].set_index("client")["bid"]
                unit = (bids.loc[answer["client"]] / 400).tolist()
                rows += [
                    (seed, number, client, 400 * promised, exact, paid.loc[seed, number, client])
                    for client, promised, exact in zip(
                        answer["client"], answer["promised"], equilibrium(reward, unit), strict=True
                    )
                ]
    return pd.DataFrame(rows, columns=["seed", "round", "client", "given", "exact", "paid"])


def check_examples_by_hand() -> None:
    """Two that are alike give a quarter of R / c each; of three, the third gives nothing where its cost is the sum."""
    assert equilibrium(8, [1, 1]) == [2, 2]
    assert np.allclose(equilibrium(8, [1, 1, 1.5]), [96 / 49, 96 / 49, 32 / 49])
    assert equilibrium(8, [1, 1, 2]) == [2, 2, 0]


def check_clients_reach_the_closed_form() -> None:
    """To 1e-6, where nobody's data are a limit."""
    for reward, unit in games(300):
        found, exact = plugins().equilibrium(reward, np.array(unit), np.inf), np.array(equilibrium(reward, unit))
        assert np.abs(found - exact).max() <= 1e-6 * exact.max()


def check_where_data_are_a_limit_each_answers_best_to_the_others() -> None:
    """By the first-order condition: the best answer to others' X is ``sqrt(R X / c) - X``, within 0 and its data."""
    for reward, unit in games(300):
        data = 0.7 * max(equilibrium(reward, unit))
        given = plugins().equilibrium(reward, np.array(unit), data)
        others = given.sum() - given
        best = np.clip(np.sqrt(reward * others / np.array(unit)) - others, 0.0, data)
        assert given.max() == data
        assert np.abs(given - best).max() <= 1e-6 * data


def check_nobody_gains_by_giving_more_or_less() -> None:
    for reward, unit in games(100):
        given = equilibrium(reward, unit)
        for i in range(len(unit)):
            best = utility(reward, unit, given, i)
            for factor in (0.0, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
                other = [*given[:i], factor * (given[i] or 0.01), *given[i + 1 :]]
                assert utility(reward, unit, other, i) <= best + 1e-12


def check_comparative_statics() -> None:
    for reward, unit in games(300):
        given = equilibrium(reward, unit)
        assert np.allclose(equilibrium(2 * reward, unit), 2 * np.array(given))  # data in proportion to the reward
        for i in np.flatnonzero(given):
            dearer = equilibrium(reward, [*unit[:i], 1.05 * unit[i], *unit[i + 1 :]])
            assert dearer[i] < given[i]  # who pays more for an image gives less
            n, total = np.count_nonzero(given), sum(unit[j] for j in np.flatnonzero(given))
            assert np.isclose(utility(reward, unit, given, i), reward * (1 - (n - 1) * unit[i] / total) ** 2)
        n, cost = len(unit), unit[0]
        alike, more = equilibrium(reward, [cost] * n), equilibrium(reward, [cost] * (n + 1))
        assert more[0] < alike[0]  # with another client each gives less
        assert sum(more) > sum(alike)  # and all together more


def check_the_leaders_reward_is_the_best_one() -> None:
    """For worth * log(1 + data) - reward: worth - sum(c) / (n - 1)."""
    assert plugins().best_reward([1.0, 1.0], 5.0) == 3.0
    for worth, unit in games(100, seed=2):

        def left(reward: float, worth: float = worth, unit: list[float] = unit) -> float:
            return worth * log(1 + sum(equilibrium(reward, unit))) - reward

        best = plugins().best_reward(unit, worth)
        assert left(best) >= max(left(worth * step / 400) for step in range(1, 800)) - 1e-12


def check_a_played_market_is_in_equilibrium_and_pays_the_reward() -> None:
    market = played(20.0)
    assert (market["given"] - market["exact"]).abs().max() <= 400 * 1e-6  # quantities are in millionths
    shares = market["exact"] / market.groupby("round")["exact"].transform("sum")
    assert (market["paid"] - 20 * shares).abs().max() < 1e-4
    assert market.groupby("round")["paid"].sum().between(20 - 1e-5, 20).all()


if __name__ == "__main__":
    for posted in (15.0, 20.0, 30.0):
        market = played(posted, seeds=10)
        data = market.groupby(["seed", "round"])["given"].sum().groupby("seed").mean()
        off = (market["given"] - market["exact"]).abs().max() / 400
        print(f"R {posted:g}: data {data.mean():.1f}, sd {data.std():.1f}, n {len(data)}, off by at most {off:.1e}")
