"""Sums over a run's offers: who outbids whom, and what clients earn. Plain data.

Sums are kept for every ``STEP``-th round; those of another round are made from the ones before it and the rounds
between, so that a long run takes little memory and any round of it is near.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from des.log_records import Outcome
from fl.arrays import IntArray
from flmarket.analysis.what_if.reasons import holders
from tui.state.history import History

STEP = 128


@dataclass(slots=True)
class Sums:
    """Sums over the rounds up to one. Money in micro-units."""

    round: int  # the last round that counts; 0 before the first
    times: IntArray  # [M, M] how often a service (row) outbid another (column)
    margin: IntArray  # [M, M] by how much altogether
    earned: IntArray  # [C] what each client was paid
    jobs: IntArray  # [C] how often each client was served

    @classmethod
    def zero(cls, services: int, clients: int) -> "Sums":
        """Return the sums before the first round."""
        shapes = ((services, services), (services, services), clients, clients)
        return cls(0, *(np.zeros(shape, dtype=np.int64) for shape in shapes))


class OfferSums:
    """The sums over a run's offers, up to any of its rounds.

    Who outbid whom follows from the payments under the paper's mechanism alone. It is counted as the order book shows
    it: each offer that was outbid, against the one with the lowest payment that held a core of the client. An offer
    that lost a draw counts with a margin of zero. One whose client gave nobody a core in the round, as it was at work
    all the time, does not count.
    """

    def __init__(self, history: History, names: Sequence[str], clients: int) -> None:
        self.names = tuple(names)  # the services
        self._history = history
        self._places = {name: m for m, name in enumerate(names)}
        self._kept = [Sums.zero(len(names), clients)]  # after each STEP rounds
        self._newest = deepcopy(self._kept[0])
        self._shown = self._newest

    def __len__(self) -> int:
        return self._newest.round

    def read(
        self,
        last: int,  # the last round to read
        # the offers after which to stop; the caller calls again, so that nothing has to wait meanwhile
        most: int = 2_000,
    ) -> bool:
        """Read rounds up to ``last`` that have not been read yet; return whether none is left."""
        offers = 0
        while len(self) < last and offers < most:
            offers += max(1, self._add(self._newest))
            if len(self) % STEP == 0:
                self._kept.append(deepcopy(self._newest))
        return len(self) >= last

    def at(self, number: int) -> Sums:
        """Return the sums up to a round that has been read."""
        if number == len(self):
            return self._newest
        if not number - STEP < self._shown.round <= number or self._shown is self._newest:
            self._shown = deepcopy(self._kept[number // STEP])
        while self._shown.round < number:
            self._add(self._shown)
        return self._shown

    def _add(self, sums: Sums) -> int:
        """Add the next round; return how many offers it has."""
        logged = self._history[sums.round + 1]
        holding = holders(logged.offers)
        for offer in logged.offers:
            if offer.paid is not None:
                sums.earned[offer.client] += offer.paid
                sums.jobs[offer.client] += 1
            elif offer.outcome is Outcome.OUTBID and (held := holding.get(offer.client)):
                beaten_by = min(reversed(held), key=lambda it: it.payment)
                pair = self._places[beaten_by.service], self._places[offer.service]
                sums.times[pair] += 1
                sums.margin[pair] += beaten_by.payment - offer.payment
        sums.round = logged.number
        return len(logged.offers)
