"""Rivalry over a run: who outbids whom, at what cost, and the clients' earnings, as sums over rounds. Plain data.

Each round is read once, into a few numbers. Going from one round to another adds or takes away those of the rounds
between, so it takes as long as the way is far, however many rounds there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from des.mechanisms import DEFAULT
from des.rows import OfferReport, Outcome
from fl.arrays import IntArray
from scenarios.logs.reading import LoggedRound
from tui.watching.history import History


class _Digest(NamedTuple):
    """The contribution of one round. Money in micro-units."""

    pays: IntArray  # [served, 2] client, and what it was paid
    beaten: IntArray  # [outbid, 3] the service that held the core, the one it outbid, and by how much
    services: IntArray  # [M, 5] spent, tied up, served, outbid, dropped
    worst: IntArray  # [M] the round, up to this one, in which most money was tied up; 0 if none was
    highest: IntArray  # [M] the money tied up in that round


@dataclass(slots=True)
class Sums:
    """Sums over the rounds up to one. Money in micro-units."""

    round: int  # the last round that counts; 0 before the first
    times: IntArray  # [M, M] how often a service (row) outbid another (column)
    margin: IntArray  # [M, M] by how much altogether
    services: IntArray  # [M, 5] see below
    earned: IntArray  # [C] what each client was paid
    jobs: IntArray  # [C] how often each client was served

    @classmethod
    def zero(cls, services: int, clients: int) -> "Sums":
        """Return the sums before the first round."""
        return cls(
            0,
            np.zeros((services, services), dtype=np.int64),
            np.zeros((services, services), dtype=np.int64),
            np.zeros((services, 5), dtype=np.int64),
            np.zeros(clients, dtype=np.int64),
            np.zeros(clients, dtype=np.int64),
        )

    @property
    def spent(self) -> IntArray:
        """[M] What each service paid."""
        return self.services[:, 0]

    @property
    def tied(self) -> IntArray:
        """[M] The payments in offers that were outbid or dropped: money that the service could not offer to others."""
        return self.services[:, 1]

    @property
    def served(self) -> IntArray:
        """[M] Offers that were served."""
        return self.services[:, 2]

    @property
    def outbid(self) -> IntArray:
        """[M] Offers that were outbid."""
        return self.services[:, 3]

    @property
    def dropped(self) -> IntArray:
        """[M] Offers that were dropped."""
        return self.services[:, 4]

    def add(self, digests: Sequence[_Digest], sign: int) -> None:
        """Add rounds, or take them away: ``sign`` is 1 or -1."""
        if not digests:
            return
        pays = np.concatenate([digest.pays for digest in digests])
        np.add.at(self.earned, pays[:, 0], sign * pays[:, 1])
        np.add.at(self.jobs, pays[:, 0], sign)
        beaten = np.concatenate([digest.beaten for digest in digests])
        np.add.at(self.times, (beaten[:, 0], beaten[:, 1]), sign)
        np.add.at(self.margin, (beaten[:, 0], beaten[:, 1]), sign * beaten[:, 2])
        self.services += sign * np.sum([digest.services for digest in digests], axis=0)
        self.round += sign * len(digests)


class Rivalry:
    """The rivalry of a run's services, up to any of its rounds.

    Who outbid whom follows from the payments under the paper's mechanism alone. It is counted as the order book tells
    it: each offer that was outbid, against the one with the lowest payment that held a core of the client. An offer
    that lost a draw counts with a margin of zero.
    """

    def __init__(self, names: Sequence[str], clients: int, mechanism: str) -> None:
        self.names = tuple(names)  # the services
        self.knows_rivals = mechanism == DEFAULT  # whether the mechanism is the paper's
        self._places = {name: m for m, name in enumerate(names)}
        self._digests: list[_Digest] = []
        self._sums = Sums.zero(len(names), clients)
        self._clients = clients

    def __len__(self) -> int:
        return len(self._digests)

    def read(
        self,
        history: History,  # the rounds
        last: int,  # the last round to read
        # the offers after which to stop; the caller calls again, so that nothing has to wait meanwhile
        most: int = 2_000,
    ) -> bool:
        """Read rounds up to ``last`` that have not been read yet; return whether none is left."""
        offers = 0
        while len(self._digests) < last and offers < most:
            logged = history[len(self._digests) + 1]
            self._digests.append(self._digest(logged))
            offers += max(1, sum(row.wanted for row in logged.services))
        return len(self._digests) >= last

    def at(self, number: int) -> Sums:
        """Return the sums up to a round that has been read. They change with the next call."""
        here = self._sums.round
        if number < here // 2:
            self._sums = Sums.zero(len(self.names), self._clients)
            here = 0
        if number >= here:
            self._sums.add(self._digests[here:number], 1)
        else:
            self._sums.add(self._digests[number:here], -1)
        return self._sums

    def worst(self, number: int) -> list[tuple[int, int, int]]:
        """Return each service's round, up to ``number``, in which most of its money was tied up in refused offers."""
        if not number:
            return []
        digest = self._digests[number - 1]
        found = zip(digest.worst.tolist(), digest.highest.tolist(), strict=True)
        return [(m, round_, money) for m, (round_, money) in enumerate(found) if round_]

    def _digest(self, logged: LoggedRound) -> _Digest:
        sums = [[0] * 5 for _ in self.names]
        pays: list[tuple[int, int]] = []
        holders: dict[int, OfferReport] = {}  # the lowest payment that holds a core of each client
        outbid: list[OfferReport] = []
        for offer in logged.offers:
            row = sums[self._places[offer.service]]
            if offer.core is not None:
                held = holders.get(offer.client)
                if held is None or offer.core > (held.core or 0):
                    holders[offer.client] = offer
            if offer.outcome is Outcome.SERVED:
                paid = offer.paid or 0
                pays.append((offer.client, paid))
                row[0] += paid
                row[2] += 1
            elif offer.outcome is Outcome.OUTBID:
                outbid.append(offer)
                row[1] += offer.payment
                row[3] += 1
            else:
                row[1] += offer.payment
                row[4] += 1
        beaten = [
            (self._places[holder.service], self._places[offer.service], holder.payment - offer.payment)
            for offer in outbid
            if self.knows_rivals and (holder := holders.get(offer.client)) is not None
        ]
        services, before = _rows(sums, 5), self._digests[-1] if self._digests else None
        tied = services[:, 1]
        highest = np.zeros_like(tied) if before is None else before.highest
        worst = np.zeros_like(tied) if before is None else before.worst
        more = tied > highest
        if more.any():
            highest, worst = np.where(more, tied, highest), np.where(more, logged.number, worst)
        return _Digest(_rows(pays, 2), _rows(beaten, 3), services, worst, highest)


def _rows(values: Sequence[Sequence[int]], columns: int) -> IntArray:
    return np.array(values, dtype=np.int64).reshape(-1, columns)
