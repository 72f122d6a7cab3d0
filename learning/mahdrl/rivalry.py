"""The chance to be served: how likely is it that fewer than K rivals outbid an offer?

Each rival outbids an offer with a probability of its own, which a small network - the same for all rivals and clients -
learns from what was served and what was refused. A rival is keen on the clients that bid high to it (a bid grows with
the data, eq. of design 3.2), and outbids for sure only where its payment, at least its bid (eq. 5), is above the price.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.records import Observation
from fl.arrays import FloatArray
from learning.mahdrl.features import SMALLEST_PRICE

WAVES = 2.0 ** np.arange(6)
"""Cycles over the range of bids. Bids come in steps that tell what a client holds, and who wants it may go up and down
with them; a small network sees such steps only if they are spread out for it."""

RIVAL_FEATURES = 3 + 2 * len(WAVES)
"""What the network sees of a rival: its ``STANDING``, whether its bid reaches the price, and the bid in waves."""

STANDING = 2
"""Numbers that say how a rival stands to an offer: its bid as a part of the round's highest, and the log of its bid
over the price."""

LARGEST_RATIO = 2.0
"""Log ratios are cut here: by then one of the two is out of the question."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The other services that still take part; [R, C], for each client the highest bid first.

    Attributes:
        bids: of each client to each of them.
        highest: bid of the round.
    """

    bids: FloatArray
    highest: float

    def __len__(self) -> int:
        return len(self.bids)

    @classmethod
    def of(cls, observation: Observation) -> "Rivals":
        """Return the rivals of the service that observes.

        A service that left has zeros for all its bids; so would one whose clients all ask for nothing, which cannot
        outbid anyone either.
        """
        own = observation.services.index(observation.service)
        active = [m for m, row in enumerate(observation.bids) if m != own and row.any()]
        ascending: FloatArray = np.sort(observation.bids[active], axis=0)
        return cls(ascending[::-1], float(observation.bids.max(initial=SMALLEST_PRICE)))

    def standing(self, prices: FloatArray, most: int) -> FloatArray:
        """Return how the rivals stand to an offer at a price, [C, L, R', 2].

        Args:
            prices: [C, L] considered for each client.
            most: R' is at most this; the rivals with the highest bids for a client are those that matter.
        """
        bids = self.bids[:most].T[:, None]  # [C, 1, R']
        standing = np.empty((*prices.shape, bids.shape[2], STANDING))
        standing[..., 0] = bids / self.highest
        ratio = np.log(np.maximum(bids, SMALLEST_PRICE)) - np.log(np.maximum(prices, SMALLEST_PRICE))[..., None]
        standing[..., 1] = np.clip(ratio, -LARGEST_RATIO, LARGEST_RATIO)
        return standing


def rivals_kept(services: int, cores: int) -> int:
    """Return how many rivals of a client are looked at: all, or in large markets enough to fill its cores thrice."""
    return min(services - 1, max(8, 3 * cores))


def features(standing: Any, library: Any) -> Any:
    """Return what the network sees, [..., 15], of [..., 2] standings.

    Args:
        standing: as ``Rivals.standing`` gives it.
        library: ``numpy`` or ``torch``, whose array it is.
    """
    part, ratio = standing[..., :1], standing[..., 1:]
    angle = part * library.asarray(2.0 * np.pi * WAVES, dtype=part.dtype)
    reaches = (ratio >= 0) * library.ones_like(ratio)
    return library.concatenate([part, reaches, ratio, library.sin(angle), library.cos(angle)], -1)


def fewer_than(cores: int, chances: Any) -> Any:
    """Return the probability that fewer than K of some independent events come true: a Poisson binomial.

    Args:
        cores: K.
        chances: [..., R] of each, NumPy or torch.
    """
    nothing = 0.0 * chances.sum(-1)  # [...] also where there is no rival
    number: Sequence[Any] = [nothing + 1.0] + [nothing] * (cores - 1)  # P(exactly j so far), j < K
    for rival in range(chances.shape[-1]):
        chance = chances[..., rival]
        number = [
            exactly * (1.0 - chance) + before * chance
            for exactly, before in zip(number, [0.0, *number[:-1]], strict=True)
        ]
    return sum(number)
