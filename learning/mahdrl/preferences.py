"""An agent's preferences: the clients it takes, by the order of their bids and of their DQI, and the outcomes."""

from collections.abc import Mapping

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arrays import BoolArray, FloatArray, IntArray

FIFTHS = 5  # parts that the clients of a round are cut into, by the order of their bids and again by that of their DQI

SHARES = tuple(f"{kind}_{part}" for kind in ("bid", "dqi") for part in range(1, FIFTHS + 1))

COLUMNS = ("episode", "service", "offers", "served", "markup", *SHARES)


class Preferences:
    """Counts the offers of an evaluation: all its markets and seats together, service by service."""

    def __init__(self) -> None:
        # by service: rounds, offers, served, the sums of bids and of payments, and the offers to each fifth
        self._sums: dict[str, FloatArray] = {}

    def add(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Count one service's offers of a round."""
        clients, bids = offer.clients, observation.own_bids
        parts = [
            np.bincount(fifths(values, observation.available)[clients], minlength=FIFTHS)
            for values in (bids, observation.dqi)
        ]
        sums = [1, len(clients), np.sum(feedback.served), bids[clients].sum(), offer.payments.sum()]
        counted = np.concatenate([sums, *parts]).astype(np.float64)
        self._sums[observation.service] = self._sums.get(observation.service, 0.0) + counted

    def rows(self, episode: int) -> list[Mapping[str, object]]:
        """Return a row for each service, by column; what there is no number for is empty."""
        found: list[Mapping[str, object]] = []
        for name, sums in self._sums.items():
            rounds, offers, served, bid, offered, *parts = sums.tolist()
            row = {
                "episode": episode,
                "service": name,
                "offers": offers / rounds,
                "served": served / offers if offers else "",
                "markup": offered / bid - 1.0 if bid > 0 else "",
            }
            found.append(
                row | {column: part / offers if offers else "" for column, part in zip(SHARES, parts, strict=True)}
            )
        return found


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
