"""Disclosure: what services see of bids and data quality; and noise in clients' costs, which only they know.

In the paper's market all bids are public, and a bid is a known function of (D, EMD), so that private data can be worked
out from it. Costs that vary with what only the client knows, bids that only their addressee sees, and DQI as a rank or
with noise each hide some of that. Draws are functions of (seed, round, client), and the service if it plays a part.
"""

from dataclasses import dataclass

import numpy as np

from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The part of bids, DQI and data that services see."""

    # whether a service sees what clients ask of its rivals; otherwise it sees only its own bids
    public_bids: bool = True
    dqi_rank: bool = False  # whether it sees the rank of each client's DQI in place of the DQI
    # how far the DQI that it sees may be off, as a part of the range of the DQI that clients can have for it. A rank is
    # that of the noisy values.
    dqi_noise: float = 0.0
    public_data: bool = False  # whether every service sees the data sizes and EMDs that clients report


class CostNoise:
    """Factors that make a client's work dear or cheap in a round besides its data, the same for all services."""

    def __init__(
        self,
        noise: float,  # the factors are uniform in [1 - noise, 1 + noise); 0 to 1
        clients: int,  # C
        seed: int,  # the run's seed
    ) -> None:
        if not 0 <= noise <= 1:
            raise ValueError(f"the noise of costs must be from 0 to 1, not {noise}")
        self._noise, self._clients, self._key = noise, np.arange(clients), draw_key(seed, "cost")

    def factors(self, round_: int) -> FloatArray:
        """Return what multiplies the costs of each client in a round, [C]."""
        if not self._noise:
            return np.ones(len(self._clients))
        drawn: FloatArray = uniforms(self._key, round_, 0, self._clients)[0]
        return 1.0 + self._noise * (2.0 * drawn - 1.0)

    def noisy_costs(self, costs: MicroArray, round_: int) -> MicroArray:
        """Return costs [M, C] of a round, micro-units, with each client's factor."""
        return products(costs, self.factors(round_)) if self._noise else costs

    def limits(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        """Return the range of costs, micro-units, that the factors can make of a range of costs."""
        return products(lowest, np.float64(1.0 - self._noise)), products(highest, np.float64(1.0 + self._noise))


def products(costs: MicroArray, factors: FloatArray | np.float64) -> MicroArray:
    """Return costs times factors of at most 2, in whole micro-units, rounded half-even; the shapes broadcast."""
    return np.rint(costs * factors).astype(np.int64)


class DQIView:
    """Shows services the clients' DQI as far as the market discloses it."""

    def __init__(
        self,
        disclosure: Disclosure,  # what they see
        lowest: FloatArray,  # [M] the lowest DQI that clients can have for each service
        highest: FloatArray,
        clients: int,  # C
        seed: int,  # the run's seed
    ) -> None:
        if not 0 <= disclosure.dqi_noise <= 1:
            raise ValueError(f"the noise of the DQI must be from 0 to 1, not {disclosure.dqi_noise}")
        self._rank, self._clients, self._key = disclosure.dqi_rank, np.arange(clients), draw_key(seed, "lens")
        self._off: FloatArray = disclosure.dqi_noise * (highest - lowest)
        self._noisy = bool(disclosure.dqi_noise)
        self._limits = lowest - self._off, highest + self._off

    def seen(self, dqi: FloatArray, round_: int) -> FloatArray:
        """Return what services see of a round's DQI, [M, C], read-only."""
        seen = dqi
        if self._noisy:
            services = np.arange(len(dqi))[:, None]
            drawn = uniforms(self._key, round_, services, self._clients)[0]
            # Rounding may not take a value beyond the limits.
            seen = np.clip(
                dqi + self._off[:, None] * (2.0 * drawn - 1.0), self._limits[0][:, None], self._limits[1][:, None]
            )
        if self._rank:
            seen = ranks(seen)
        seen.setflags(write=False)
        return seen

    @property
    def range(self) -> tuple[FloatArray, FloatArray]:
        """The lowest [M] and the highest [M] value that each service can see."""
        if self._rank:
            return np.zeros(len(self._off)), np.ones(len(self._off))
        return self._limits


def ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value [M, C] in its row: the share of the others that are lower, equal ones by half.

    So the lowest of different values has 0 and the highest 1; equal values have equal ranks. One that is alone has 0.5.
    """
    others = values.shape[1] - 1
    if not others:
        return np.full(values.shape, 0.5)
    result = np.empty(values.shape)
    for row, rank in zip(values, result, strict=True):
        ascending = np.sort(row)
        lower, upto = (np.searchsorted(ascending, row, side) for side in ("left", "right"))
        rank[:] = (lower + upto - 1) / (2.0 * others)
    return result
