"""Small markets to attack a mechanism in, each a function of the seed and its number.

A market is drawn such that a scenario can show it: all data sets have the same size, so that a client's EMD alone
decides its bid, in steps of ``TICK``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from des.money import Micro, MicroArray
from fl.arithmetic.draws import draw_key, uniforms

IMAGES = 5_000  # D of every data set

TICK: Micro = 1_000  # bids are multiples of it: the money that is in one step of the EMD of ``IMAGES`` images

LEAST_BID: Micro = 100_000
MOST_BID: Micro = 4_600_000  # more than any client is worth

COSTS = 500_000, 3_000_000  # where costs are drawn from, micro-units
VALUES = 500_000, 4_500_000

AMPLE: Micro = 10**9  # a budget that never binds


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of the sampled markets, and whether budgets bind. A value of None is drawn for each market."""

    services: int | None = None  # M; drawn from 2 to 4
    clients: int | None = None  # C; drawn from 2 to 5
    cores: int | None = None  # K; drawn from 1 to 2
    budgets: bool = True  # whether services have budgets that can bind


@dataclass(frozen=True, slots=True, eq=False)
class SampledMarket:
    """One market of one round. Money is in micro-units."""

    seed: int  # of the draws that break ties, and of the run that plays the market as a scenario
    values: MicroArray  # [M, C] what each client is worth to each service
    costs: MicroArray  # [M, C] what the work costs each client, multiples of ``TICK``
    budgets: MicroArray  # [M]
    cores: int  # K


class Dice:
    """A sequence of random numbers of its own for each purpose."""

    def __init__(self, seed: int, *purpose: str | int) -> None:
        self._numbers = _numbers(seed, *purpose)

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        return next(self._numbers)

    def below(self, count: int) -> int:
        """Return a whole number in [0, count)."""
        return int(self.uniform() * count)

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``."""
        return low + self.below(high - low + 1)

    def order(self, count: int) -> list[int]:
        """Return 0 to count - 1 in random order."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def _numbers(seed: int, *purpose: str | int) -> Iterator[float]:
    key, block = draw_key(seed, "certify", *purpose), 0
    while True:
        yield from uniforms(key, block, 0, 0, np.arange(256))[0].tolist()
        block += 1


def sample(shape: Sizes, seed: int, number: int) -> SampledMarket:
    """Draw a market.

    The values of one client are drawn around a level of its own, so that services compete for the same clients. A
    budget pays between a fifth and all of what the clients are worth to the service.
    """
    dice = Dice(seed, "market", number)
    services = shape.services or dice.between(2, 4)
    clients = shape.clients or dice.between(2, 5)
    cores = shape.cores or dice.between(1, 2)
    alike = dice.uniform()  # how much services agree on what clients are worth
    levels = [dice.between(*VALUES) for _ in range(clients)]
    values = np.array(
        [[round(alike * level + (1 - alike) * dice.between(*VALUES)) for level in levels] for _ in range(services)]
    )
    cheapest, dearest = (cost // TICK for cost in COSTS)
    costs = np.array([[dice.between(cheapest, dearest) for _ in range(clients)] for _ in range(services)]) * TICK
    shares = [0.2 + 0.8 * dice.uniform() for _ in range(services)]
    budgets = [round(share * total) for share, total in zip(shares, values.sum(axis=1).tolist(), strict=True)]
    return SampledMarket(number, values, costs, np.array(budgets if shape.budgets else [AMPLE] * services), cores)


def doubled(market: SampledMarket, client: int) -> tuple[SampledMarket, SampledMarket]:
    """Return a market in which a client has a second name, the number behind its own: it comes as one, and as two.

    As one, the second name is worth nothing and asks the most; as two, each has half of the data: of values and costs.
    """
    values, costs = (
        np.insert(it, client + 1, own, axis=1) for it, own in ((market.values, 0), (market.costs, MOST_BID))
    )
    halves = []
    for amounts, step in ((market.values, 1), (market.costs, TICK)):
        half = amounts[:, client] // 2 // step * step
        halves.append(np.insert(amounts, client + 1, half, axis=1))
        halves[-1][:, client] -= half
    return replace(market, values=values, costs=costs), replace(market, values=halves[0], costs=halves[1])
