"""Availability: a trace of the rounds in which each client can be selected."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Presence(NamedTuple):
    """Rounds in which a client is there, both ends included."""

    client: int
    first: int
    last: int


class Availability:
    """Says who is offline in a round: all for whom no interval says otherwise."""

    def __init__(self, clients: int, intervals: Sequence[Presence]) -> None:
        self._all = np.arange(clients)
        self._client, self._first, self._last = np.array(intervals, dtype=np.int64).reshape(-1, 3).T

    def offline(self, round_: int) -> frozenset[int]:
        """Return the clients that cannot be selected in a round."""
        there = self._client[(self._first <= round_) & (round_ <= self._last)]
        return frozenset(np.setdiff1d(self._all, there).tolist())
