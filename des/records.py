"""What goes into a round and what comes out: plain data, shared by market, policies, logs and screens.

Money is in units (floats with six decimals) towards policies, and in whole micro-units in reports.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from des.money import Micro
from fl.streams import generator

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Privileged:
    """What no service of the paper can see; only policies that declare ``privileged = True`` get it.

    Attributes:
        data_size: [C] images that each client holds for this service.
        emd: [C] their realised EMD.
        rival_offers: what the other services offer in this round, by name; only for policies that declare
            ``sees_offers``. Services whose policies also declare it, and services that have left, are not in it.
    """

    data_size: IntArray
    emd: FloatArray
    rival_offers: "Mapping[str, Offer] | None" = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What one service sees when the bids of a round are closed: the paper's state s_m^n, and its own progress.

    Arrays are read-only.

    Attributes:
        round: n, from 1.
        rounds: N, the rounds of the run.
        service: name of the service that observes.
        services: names of all services, in the order of the rows of ``bids``.
        dqi: [C] DQI of each client's data set for this service (eq. 6).
        bids: [M, C] every client's bid to every service, in money; zero where a service has left.
        budget: B_m, the money this service may offer in this round.
        cores: K, services a client can serve at once.
        accuracy: of the own global model, in [0, 1].
        target_accuracy: at which the service leaves.
        key: names the service's own random stream of this round; use ``rng()``.
        offline: clients that can't be selected in this round; an offer to one is an error. See ``available``.
        privileged: only for policies that declare it.
    """

    round: int
    rounds: int
    service: str
    services: tuple[str, ...]
    dqi: FloatArray
    bids: FloatArray
    budget: float
    cores: int
    accuracy: float
    target_accuracy: float
    key: bytes
    offline: frozenset[int] = frozenset()
    privileged: Privileged | None = None

    @property
    def own_bids(self) -> FloatArray:
        """[C] each client's bid to this service, in money."""
        row: FloatArray = self.bids[self.services.index(self.service)]
        return row

    @property
    def clients(self) -> int:
        """C, the number of clients."""
        return len(self.dqi)

    @property
    def available(self) -> BoolArray:
        """[C] whether each client can be selected."""
        mask = np.ones(self.clients, dtype=np.bool_)
        if self.offline:
            mask[list(self.offline)] = False
        return mask

    def rng(self) -> Generator:
        """Return the generator of this service and round, at its start: the only randomness a policy may use to act."""
        return generator(self.key)


@dataclass(frozen=True, slots=True)
class Offer:
    """A service's action in one round: the clients it wants (X_m) and what it offers to pay each (P_m). Binding.

    Attributes:
        clients: [k] indices of different clients, in the order in which they were chosen.
        payments: [k] money, each at least the client's bid, together within the budget.
    """

    clients: IntArray
    payments: FloatArray

    @classmethod
    def none(cls) -> "Offer":
        """Return the offer that wants nobody."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


class Outcome(StrEnum):
    """What became of an offer."""

    SERVED = "served"
    OUTBID = "outbid"  # K services paid the client more
    DROPPED = "dropped"  # awarded, but the update did not arrive: a deadline missed, or the client left


class Status(StrEnum):
    """Where a service stands at the end of a round."""

    TRAINING = "training"
    REACHED = "reached"  # met its target in this round and leaves
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a service learns of its own round.

    Attributes:
        round: n.
        accuracy: of its new global model, in [0, 1].
        reward: Omega^accuracy, or Omega^target from the round in which the target was met.
        served: [k] which of the offered clients trained for it, in the order of the offer.
        paid: [k] what each served client was paid, in money; 0 for the others.
        losses: [k] mean local training loss of each served client, NaN for the others.
        status: ``training`` or ``reached``.
    """

    round: int
    accuracy: float
    reward: float
    served: BoolArray
    paid: FloatArray
    losses: FloatArray
    status: Status


class OfferReport(NamedTuple):
    """One offer and its outcome: a row of offers.csv. Money in micro-units, times in simulated seconds.

    ``payment`` is what the service offered, ``paid`` what the client got for it: None unless it was served.
    """

    round: int
    service: str
    client: int
    data_size: int
    emd: float
    dqi: float
    bid: Micro
    payment: Micro
    paid: Micro | None
    outcome: Outcome
    core: int | None
    start: float | None
    end: float | None


class Kind(StrEnum):
    """The events of a round, in the order of the paper's slot."""

    REFRESH = "refresh"
    BID = "bid"
    DECISION = "decision"
    AWARD = "award"
    TRAIN_START = "train_start"
    TRAIN_END = "train_end"
    UPLOAD = "upload"
    AGGREGATE = "aggregate"
    EVALUATE = "evaluate"
    PAY = "pay"
    EXIT = "exit"


class MarketEvent(NamedTuple):
    """One event on the market's timeline: a row of events.csv.

    ``amount`` is money for bid (the lowest on the service's book), decision (the sum offered), award and pay, the
    accuracy for evaluate and exit, and the images trained on for aggregate.
    """

    round: int
    sim_time: float
    event: Kind
    service: str | None
    client: int | None
    core: int | None
    amount: Micro | float | None


class ServiceReport(NamedTuple):
    """One service's round: a row of rounds.csv. Money in micro-units, makespan in simulated seconds.

    Means are over served clients and None where there are none.
    """

    service: str
    dataset: str
    policy: str
    status: Status
    accuracy: float
    target_accuracy: float
    reward: float
    budget: Micro
    offered: Micro
    spent: Micro
    wanted: int
    served: int
    refused: int
    samples: int | None
    mean_emd: float | None
    mean_dqi: float | None
    mean_bid: float | None
    mean_payment: float | None
    makespan: float | None


@dataclass(frozen=True, slots=True)
class RoundReport:
    """Everything that happened in one round.

    Attributes:
        round: n.
        start: simulated time of the data refresh, seconds.
        end: simulated time at which the slot ended.
        services: one report for each service, in the scenario's order, also for those that have left.
        offers: all offers, by service, in the order in which the service chose.
        events: the timeline, in order of time.
        feedback: for each service that acted.
        last: no further round follows.
    """

    round: int
    start: float
    end: float
    services: tuple[ServiceReport, ...]
    offers: tuple[OfferReport, ...]
    events: tuple[MarketEvent, ...]
    feedback: Mapping[str, Feedback]
    last: bool
