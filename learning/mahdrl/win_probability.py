"""The chance to be served: how likely is it that fewer than K rivals outbid an offer?

Each rival outbids an offer with a probability of its own, which a small network, the same for all rivals and clients,
learns from what was served and what was refused. A rival is keen on the clients that bid high to it, because a bid
grows with the data, and outbids for sure only where its payment, at least its bid (eq. 5), is above the price.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from des.observation import Observation
from fl.arithmetic.elementary import log, waves
from fl.arithmetic.ordered_sums import mean
from fl.arrays import FloatArray

SMALLEST_PRICE = 1e-3  # money; keeps ratios of prices finite where a client asks for nothing

WAVES = 2.0 ** np.arange(6)
"""Cycles over the range of bids. Bids come in steps that reveal what a client holds, and demand may go up and down with
them; a small network sees such steps only if they are spread out for it."""

RIVAL_FEATURES = 3 + 2 * len(WAVES)
"""Numbers that the network sees of a rival: its standing, whether its bid reaches the price, and the bid in waves."""

STANDING = 2
"""Numbers in a rival's standing to an offer: its bid as a part of the round's highest, and the log of its bid over the
price."""

LARGEST_RATIO = 2.0  # log ratios are cut to this: beyond it, one of the two is out of the question


@dataclass(frozen=True, slots=True)
class Rivals:
    """The R other services that still take part."""

    bids: FloatArray  # [R, C] of each client to each of them, for each client the highest bid first
    highest: float  # the highest bid of the round, to any service

    def __len__(self) -> int:
        return len(self.bids)

    @classmethod
    def of(cls, observation: Observation) -> "Rivals":
        """Return the rivals of the service that observes.

        A service that has left has only zeros as bids. So has one whose clients all ask for nothing; it is left out,
        too. Where bids are not public, all other services may take part, and what clients ask of them is not known: in
        its place stands what they ask of the service itself, on average over the clients.
        """
        if not observation.bids_public:
            asked = observation.own_bids
            unknown = np.broadcast_to(mean(asked), (len(observation.services) - 1, observation.clients))
            return cls(unknown, float(asked.max(initial=SMALLEST_PRICE)))
        own = observation.services.index(observation.service)
        active = [m for m, row in enumerate(observation.bids) if m != own and row.any()]
        ascending: FloatArray = np.sort(observation.bids[active], axis=0)
        return cls(ascending[::-1], float(observation.bids.max(initial=SMALLEST_PRICE)))

    def standing(
        self,
        prices: FloatArray,  # [C, L] considered for each client
        most: int,  # R' is at most this; the rivals with the highest bids for a client are kept
    ) -> FloatArray:
        """Return the rivals' standings to an offer at each price, [C, L, R', 2]."""
        bids = self.bids[:most].T[:, None]  # [C, 1, R']
        standing = np.empty((*prices.shape, bids.shape[2], STANDING))
        standing[..., 0] = bids / self.highest
        ratio = log(np.maximum(bids, SMALLEST_PRICE) / np.maximum(prices, SMALLEST_PRICE)[..., None])
        standing[..., 1] = np.clip(ratio, -LARGEST_RATIO, LARGEST_RATIO)
        return standing


def rivals_kept(services: int, cores: int) -> int:
    """Return how many rivals for a client are looked at: all; in large markets, those that fill its cores thrice."""
    return min(services - 1, max(8, 3 * cores))


def features(
    standing: Any,  # [..., 2], see ``Rivals.standing``
    library: Any,  # ``numpy`` or ``torch``, whichever the array is of
) -> Any:
    """Return what the network sees of rivals, [..., 15]."""
    part, ratio = standing[..., :1], standing[..., 1:]
    if library is np:
        sine, cosine = _waves(part[..., 0].astype(np.float64))
    else:
        angle = part * library.asarray(2.0 * np.pi * WAVES, dtype=part.dtype)
        sine, cosine = library.sin(angle), library.cos(angle)
    reaches = (ratio >= 0) * library.ones_like(ratio)
    return library.concatenate([part, reaches, ratio, sine, cosine], -1)


def _waves(part: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sines and cosines [..., 6] of a part of the range of bids, the same bits on every machine."""
    sine, cosine = waves(part)
    sines, cosines = [sine], [cosine]
    for _ in WAVES[1:]:  # each has twice the cycles of the one before
        sine, cosine = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
        sines.append(sine)
        cosines.append(cosine)
    return np.stack(sines, axis=-1), np.stack(cosines, axis=-1)


def fewer_than(
    cores: int,  # K
    chances: Any,  # [..., R] the probability of each, NumPy or torch
) -> Any:
    """Return the probability [...] that fewer than K of R independent events happen (Poisson binomial)."""
    return sum(exactly(cores, chances))


def exactly(
    most: int,  # how many probabilities
    chances: Any,  # [..., R] the probability of each, NumPy or torch
) -> list[Any]:
    """Return the probabilities [...] that 0, 1, ... ``most`` - 1 of R independent events happen."""
    nothing = 0.0 * chances.sum(-1)  # of shape [...] even without rivals
    number: list[Any] = [nothing + 1.0] + [nothing] * (most - 1)  # of the events so far
    for rival in range(chances.shape[-1]):
        chance = chances[..., rival]
        number = [
            same * (1.0 - chance) + before * chance for same, before in zip(number, [0.0, *number[:-1]], strict=True)
        ]
    return number
