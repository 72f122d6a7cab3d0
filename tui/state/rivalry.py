"""Rivalry over a run: who outbids whom, at what cost, and the clients' earnings, as sums over rounds. Plain data.

Sums are kept for every ``STEP``-th round; those of another round are made from the ones before it and the rounds
between, so that a long run takes little memory and any round of it is near.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from des.log_records import OfferReport, Outcome
from des.mechanisms.mechanism import DEFAULT
from fl.arrays import IntArray
from scenarios.logs.reading import LoggedRound
from tui.state.history import History

STEP = 128


@dataclass(slots=True)
class Sums:
    """Sums over the rounds up to one. Money in micro-units."""

    round: int  # the last round that counts; 0 before the first
    times: IntArray  # [M, M] how often a service (row) outbid another (column)
    margin: IntArray  # [M, M] by how much altogether
    spent: IntArray  # [M] what each service paid
    tied: IntArray  # [M] payments in offers that were outbid or dropped: money that could not be offered to others
    served: IntArray  # [M] offers that were served
    outbid: IntArray  # [M] offers that were outbid
    dropped: IntArray  # [M] offers that were dropped
    earned: IntArray  # [C] what each client was paid
    jobs: IntArray  # [C] how often each client was served
    worst: IntArray  # [M] the round in which most money was tied up; 0 if none was
    highest: IntArray  # [M] the money tied up in that round

    @classmethod
    def zero(cls, services: int, clients: int) -> "Sums":
        """Return the sums before the first round."""
        pairs = (np.zeros((services, services), dtype=np.int64) for _ in range(2))
        by_service = (np.zeros(services, dtype=np.int64) for _ in range(5))
        by_client = (np.zeros(clients, dtype=np.int64) for _ in range(2))
        return cls(0, *pairs, *by_service, *by_client, *(np.zeros(services, dtype=np.int64) for _ in range(2)))


class Rivalry:
    """The rivalry of a run's services, up to any of its rounds.

    Who outbid whom follows from the payments under the paper's mechanism alone. It is counted as the order book shows
    it: each offer that was outbid, against the one with the lowest payment that held a core of the client. An offer
    that lost a draw counts with a margin of zero.
    """

    def __init__(
        self,
        history: History,
        names: Sequence[str],  # the services
        clients: int,
        mechanism: str,
    ) -> None:
        self.names = tuple(names)
        self.knows_rivals = mechanism == DEFAULT  # whether the mechanism is the paper's
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
        holders: dict[int, OfferReport] = {}  # the lowest payment that holds a core of each client
        tied = np.zeros_like(sums.tied)
        for offer in logged.offers:
            m = self._places[offer.service]
            if offer.core is not None:
                held = holders.get(offer.client)
                if held is None or offer.core > (held.core or 0):
                    holders[offer.client] = offer
            if offer.outcome is Outcome.SERVED:
                paid = offer.paid or 0
                sums.spent[m] += paid
                sums.served[m] += 1
                sums.earned[offer.client] += paid
                sums.jobs[offer.client] += 1
                continue
            tied[m] += offer.payment
            (sums.outbid if offer.outcome is Outcome.OUTBID else sums.dropped)[m] += 1
        if self.knows_rivals:
            self._count_beaten(sums, logged, holders)
        sums.round, sums.tied = logged.number, sums.tied + tied
        sums.worst[tied > sums.highest] = logged.number
        sums.highest = np.maximum(sums.highest, tied)
        return len(logged.offers)

    def _count_beaten(self, sums: Sums, logged: LoggedRound, holders: dict[int, OfferReport]) -> None:
        for offer in logged.offers:
            holder = holders.get(offer.client)
            if offer.outcome is Outcome.OUTBID and holder is not None:
                pair = self._places[holder.service], self._places[offer.service]
                sums.times[pair] += 1
                sums.margin[pair] += holder.payment - offer.payment
