"""What an agent prefers: which clients it takes, by the order of their bids and of their DQI, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from des.records import Feedback, Observation, Offer
from fl.arrays import BoolArray, FloatArray, IntArray

FIFTHS = 5  # parts that the clients of a round are cut into, by the order of their bids and again by that of their DQI

COLUMNS = (
    "episode",
    "service",
    "offers",
    "served",
    "markup",
    *(f"bid_{part}" for part in range(1, FIFTHS + 1)),
    *(f"dqi_{part}" for part in range(1, FIFTHS + 1)),
)


@dataclass(slots=True)
class _Counts:
    """What one service has done so far."""

    rounds: int = 0
    offers: int = 0
    served: int = 0
    bid: float = 0.0
    offered: float = 0.0
    bids: IntArray = field(default_factory=lambda: np.zeros(FIFTHS, np.int64))
    dqis: IntArray = field(default_factory=lambda: np.zeros(FIFTHS, np.int64))


class Preferences:
    """Counts the offers of an evaluation: all its markets and seats together, service by service."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}

    def add(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Count one service's offers of a round."""
        counts = self._counts.setdefault(observation.service, _Counts())
        counts.rounds += 1
        counts.offers += len(offer.clients)
        counts.served += int(np.sum(feedback.served))
        counts.bid += float(observation.own_bids[offer.clients].sum())
        counts.offered += float(offer.payments.sum())
        for total, values in ((counts.bids, observation.own_bids), (counts.dqis, observation.dqi)):
            total += np.bincount(fifths(values, observation.available)[offer.clients], minlength=FIFTHS)

    def rows(self, episode: int) -> list[Mapping[str, object]]:
        """Return a row for each service, by column; what there is no number for is empty."""
        return [{"episode": episode, "service": name, **_row(counts)} for name, counts in self._counts.items()]


def fifths(
    values: FloatArray,  # [C], a bid or a DQI of each client
    available: BoolArray,  # [C], whether each client can be chosen: only these are ordered; the others are in fifth 0
) -> IntArray:
    """Return the fifth of each client [C], from 0, in the order of some values; of equal ones, the first come first."""
    parts = np.zeros(len(values), np.int64)
    chosen = np.flatnonzero(available)
    order = chosen[np.argsort(values[chosen], kind="stable")]
    parts[order] = np.arange(len(order)) * FIFTHS // max(1, len(order))
    return parts


def _row(counts: _Counts) -> dict[str, object]:
    shares = [*(f"bid_{part}" for part in range(1, FIFTHS + 1)), *(f"dqi_{part}" for part in range(1, FIFTHS + 1))]
    found = [*counts.bids.tolist(), *counts.dqis.tolist()]
    return {
        "offers": counts.offers / counts.rounds,
        "served": counts.served / counts.offers if counts.offers else "",
        "markup": counts.offered / counts.bid - 1.0 if counts.bid > 0 else "",
        **{name: count / counts.offers if counts.offers else "" for name, count in zip(shares, found, strict=True)},
    }
