"""Observation, offer and feedback of a service in a round: plain data, with money in units (six decimals)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from fl.arithmetic.streams import generator
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.text import counted


@dataclass(frozen=True, slots=True)
class Privileged:
    """The data that the paper hides from services.

    Only policies that declare ``privileged = True`` see it, or all where the market makes data public.

    Attributes:
        data_size: [C] images that each client reports for this service; what it holds, unless it misreports.
        emd: [C] the EMD that it reports; the realised one, unless it misreports.
        rival_offers: what the other services offer in this round, by name; only for policies that declare
            ``sees_offers``, otherwise None. It does not include services whose policies also declare it, or that have
            left.
    """

    data_size: IntArray
    emd: FloatArray
    rival_offers: "Mapping[str, Offer] | None" = None


class Progress(NamedTuple):
    """What a service knows of its own work at the start of a period, where work may outlast periods."""

    time: float  # simulated seconds
    models: int  # how many it has made
    at_work: int  # how many clients are at work for it
    staleness: float  # their mean staleness: the models that it has made since they began; 0 if there are none
    since: float = 0.0  # simulated seconds since the market's last decision; 0 at the first one


class Turn(NamedTuple):
    """Whose turn it is, where clients come one after another."""

    number: int  # from 1
    of: int  # how many clients come in this round
    client: int  # the index of the one that is on offer; ``available`` says whether it serves this service


@dataclass(frozen=True, slots=True)
class Observation:
    """One service's view when the bids of a round are closed: the paper's state s_m^n, and its own progress.

    In the paper's market this hides less than it seems to. A truthful client's bid is a known function of its data, and
    all bids are public, to rivals as well: with the numbers of ``paper`` all 16 pairs (D, EMD) have different bids, so
    each bid tells the pair, for every service. That the DQI is private then protects nothing, and
    a ``privileged`` policy knows little that is not public. A scenario can hide more: see ``des.clients.disclosure``.

    Arrays are read-only.

    Attributes:
        round: n, from 1.
        rounds: N, the number of rounds in the run.
        service: name of the service that observes.
        services: names of all services, in the order of the rows of ``bids``.
        dqi: [C] DQI of each client's data set for this service (eq. 6); where the market discloses less, its rank from
            0 to 1, or a value with noise.
        bids: [M, C] the least that every client can be offered by every service, money: its bid, unless the market's
            mechanism asks for more; zero where a service has left, or has not arrived, and for all rivals if bids are
            not public: see ``bids_public``.
        budget: B_m, the money that this service may offer in this round, or what is left of it.
        cores: K, how many services a client can serve at once, at most.
        accuracy: the accuracy of the service's own global model, in [0, 1].
        target_accuracy: the accuracy at which the service leaves.
        key: identifies the service's own random stream of this round, or of this turn; use ``rng()``.
        offline: clients that cannot be selected in this round; an offer to one is an error. See ``available``.
        privileged: what only policies that declare ``privileged`` see, or all where data are public; otherwise None.
        unwilling: [C] whether a client does not serve this service, at all or at the price that the mechanism asks for,
            is under a contract, has refused it already in this round, or is not the one that is on offer now where
            clients come one after another; None if all serve. See ``available``.
        bids_public: whether ``bids`` shows what clients ask of the rivals. If not, the rivals' rows are zero whether or
            not they take part, and say nothing about them.
        total_left: what is left of the service's budget for the whole run, money; None if it has none. ``budget`` is
            never more.
        over_budget: whether offers may add up to more than ``budget``, because the mechanism sees to it that prices
            do not. See ``offer_limit``.
        cores_of: [C] how many services each client can serve at once; None if all can serve K. See ``capacity``.
        progress: what the service knows of its own work, where work may outlast a round; otherwise None.
        turn: the client on offer and how many are still to come, where clients come one after another; None where all
            come at once, or none comes.
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
    unwilling: BoolArray | None = None
    over_budget: bool = False
    total_left: float | None = None
    bids_public: bool = True
    cores_of: IntArray | None = None
    progress: Progress | None = None
    turn: Turn | None = None

    @property
    def capacity(self) -> int | IntArray:
        """K, or [C] what each client has where some have less."""
        return self.cores if self.cores_of is None else self.cores_of

    @property
    def offer_limit(self) -> float:
        """The limit on the sum of an offer's payments, money: the budget, or infinity."""
        return math.inf if self.over_budget else self.budget

    @property
    def own_bids(self) -> FloatArray:
        """Each client's bid to this service [C], money."""
        row: FloatArray = self.bids[self.services.index(self.service)]
        return row

    @property
    def clients(self) -> int:
        """C, the number of clients."""
        return len(self.dqi)

    @property
    def available(self) -> BoolArray:
        """Whether each client can be selected, [C]."""
        mask = np.ones(self.clients, dtype=np.bool_) if self.unwilling is None else ~self.unwilling
        if self.offline:
            mask[np.fromiter(self.offline, np.int64, len(self.offline))] = False
        return mask

    def rng(self) -> Generator:
        """Return a new generator for this service and round, or turn: all the randomness that a policy may act by."""
        return generator(self.key)


@dataclass(frozen=True, slots=True)
class Offer:
    """A service's action in one round: the clients it wants (X_m) and what it offers to pay each (P_m). It is binding.

    Attributes:
        clients: [k] indices of different clients, in the order in which they were chosen.
        payments: [k] money: each at least the client's bid, all together within the budget.
    """

    clients: IntArray
    payments: FloatArray

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, where it is made; the market checks the rest.

        Raises:
            ValueError: there are more clients than payments, or fewer.
        """
        wanted, paid = _length(self.clients), _length(self.payments)
        if wanted is not None and paid is not None and wanted != paid:
            raise ValueError(
                f"an offer has one payment for each client, not {counted(paid, 'payment')} for "
                f"{counted(wanted, 'client')}"
            )

    def and_then(self, *later: "Offer") -> "Offer":
        """Return this offer, followed by those that the same service makes later in the round, in their order."""
        return Offer(
            np.concatenate([np.asarray(it.clients, np.int64) for it in (self, *later)]),
            np.concatenate([np.asarray(it.payments, np.float64) for it in (self, *later)]),
        )

    @classmethod
    def none(cls) -> "Offer":
        """Return the offer that wants no client."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


def _length(values: object) -> int | None:
    """Return the length of a list or array; None for anything else."""
    if isinstance(values, np.ndarray):
        return len(values) if values.ndim else None
    return len(values) if isinstance(values, list | tuple) else None


class Status(StrEnum):
    """The state of a service at the end of a round."""

    TRAINING = "training"
    REACHED = "reached"  # met its target in this round and leaves
    GAVE_UP = "gave-up"  # has not met its target, and leaves with this round, as its patience is over
    LEFT = "left"
    WAITING = "waiting"  # has not arrived

    @property
    def takes_part(self) -> bool:
        """Whether the service took part in the round."""
        return self is Status.TRAINING or self.leaves

    @property
    def leaves(self) -> bool:
        """Whether the service leaves with the round."""
        return self in (Status.REACHED, Status.GAVE_UP)

    @property
    def gone(self) -> bool:
        """Whether the service takes part in no later round."""
        return self is Status.LEFT or self.leaves


class Completed(NamedTuple):
    """The outcome of an earlier offer whose client was at work when the period of that offer ended."""

    round: int  # that of the offer
    client: int
    promised: float  # what was set aside for the client, money
    paid: float  # what it was paid, money; 0 if its update did not arrive
    loss: float  # its mean local training loss; NaN if its update did not arrive


@dataclass(frozen=True, slots=True)
class Feedback:
    """The outcome of a round for one service.

    Attributes:
        round: n.
        accuracy: the accuracy of its new global model, in [0, 1].
        reward: Omega^accuracy, at most Omega^target.
        served: [k] whether each client of the offer trained for it, in the order of the offer, or is still at work.
        dropped: [k] whether each was awarded and its update did not arrive: it left, or missed the deadline.
        paid: [k] what each served client was paid, money; 0 for the others, and while it is at work.
        losses: [k] mean local training loss of each served client, NaN for the others, and while it is at work.
        status: ``training``, ``reached`` or ``gave-up``.
        promised: [k] what is set aside for each client that is still at work, money; 0 for the others. None where all
            work ends with its round.
        length: how long the round was, in slots: 1 unless events end rounds, too.
        completed: what has come in this round of offers of earlier ones, in the order in which their work ended.
    """

    round: int
    accuracy: float
    reward: float
    served: BoolArray
    dropped: BoolArray
    paid: FloatArray
    losses: FloatArray
    status: Status
    promised: FloatArray | None = None
    length: float = 1.0
    completed: tuple[Completed, ...] = ()

    @property
    def won(self) -> BoolArray:
        """[k] Whether each offer was accepted, whatever the client then delivered; the others were defeated."""
        return self.served | self.dropped
