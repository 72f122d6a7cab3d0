"""The records of a round: rows of the logs, plain data for logs and screens.

Money is in whole micro-units, time in whole microseconds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from des.clock import Microseconds
from des.money import MICRO, Micro
from des.observation import Completed, Feedback, Status
from fl.arrays import FloatArray, read_only

if TYPE_CHECKING:
    from des.service import ServiceSpec, ServiceState


class Outcome(StrEnum):
    SERVED = "served"
    OUTBID = "outbid"  # K services offered the client more
    DROPPED = "dropped"  # awarded, but the update did not arrive: it missed the deadline, or the client left
    DECLINED = "declined"  # awarded, but the client answered that it does nothing


class OfferReport(NamedTuple):
    """One offer and its outcome: a row of offers.csv. Money is in micro-units, time in microseconds.

    ``payment`` is what the service offered, and ``paid`` what the client received for it: None unless it served.
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
    start: Microseconds | None
    end: Microseconds | None


class ClientReport(NamedTuple):
    """An offer as its client sees it: a row of clients.csv. Money is in micro-units.

    ``data_size``, ``emd`` and ``cost`` are the truth; ``reported_size`` and ``reported_emd`` what services see.
    ``paid`` and ``profit``, which is what it was paid less the cost, are None unless it served.
    """

    round: int
    service: str
    client: int
    data_size: int
    reported_size: int
    emd: float
    reported_emd: float
    cost: Micro
    bid: Micro
    paid: Micro | None
    profit: Micro | None


class ResponseReport(NamedTuple):
    """The answer of a client to an award: a row of responses.csv. Quantities are in millionths of all of the work."""

    round: int
    service: str
    client: int
    promised: int
    done: int


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
    CANCEL = "cancel"


class MarketEvent(NamedTuple):
    """One event on the market's timeline: a row of events.csv.

    ``amount`` is money for bid (the lowest bid to the service), decision (the sum offered), award, pay and cancel (the
    fee for the end of a contract); the accuracy for evaluate and exit; and the number of images for aggregate.
    """

    round: int
    sim_time: Microseconds
    event: Kind
    service: str | None
    client: int | None
    core: int | None
    amount: Micro | float | None


class ServiceReport(NamedTuple):
    """One service's round: a row of rounds.csv. Money is in micro-units, the makespan in microseconds.

    Means are over served clients, and None if there are none. ``test_accuracy`` is ``accuracy`` where no images are
    held out.
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
    makespan: Microseconds | None
    test_accuracy: float

    @classmethod
    def of(
        cls,
        spec: "ServiceSpec",
        state: "ServiceState",
        reward: float,
        offers: Sequence[OfferReport],
        samples: int,  # the images that served clients trained on, as they report them
        fees: Micro = 0,  # what the service has paid for the end of contracts
    ) -> Self:
        """Return a service's row of rounds.csv, given its rows of offers.csv and its reward."""
        served = [offer for offer in offers if offer.outcome is Outcome.SERVED]
        paid = [offer.paid or 0 for offer in served]
        return cls(
            service=spec.name,
            dataset=spec.dataset,
            policy=spec.policy,
            status=state.status,
            accuracy=state.accuracy,
            target_accuracy=spec.target_accuracy,
            reward=reward,
            budget=spec.budget,
            offered=sum([offer.payment for offer in offers]),
            spent=sum(paid) + fees,
            wanted=len(offers),
            served=len(served),
            refused=len(offers) - len(served),
            samples=samples if served else None,
            mean_emd=_mean([offer.emd for offer in served]),
            mean_dqi=_mean([offer.dqi for offer in served]),
            mean_bid=_mean([offer.bid / MICRO for offer in served]),
            mean_payment=_mean([amount / MICRO for amount in paid]),
            makespan=_makespan(served),
            test_accuracy=state.test_accuracy,
        )


def _mean(values: Sequence[float]) -> float | None:
    # Python adds floats in one way up to version 3.11 and in another one since; the exact sum is the same everywhere.
    return math.fsum(values) / len(values) if values else None


def _makespan(served: Sequence[OfferReport]) -> Microseconds | None:
    starts = [offer.start for offer in served if offer.start is not None]
    ends = [offer.end for offer in served if offer.end is not None]
    return max(ends) - min(starts) if ends else None


class ModelReport(NamedTuple):
    """A model that a service has made: a row of models.csv. Time is in microseconds."""

    round: int  # the period
    sim_time: Microseconds
    service: str
    model: int  # its number, from 1
    updates: int  # that went into it
    mean_staleness: float
    max_staleness: int
    at_work: int  # how many clients are still at work for the service


@dataclass(frozen=True)
class RoundReport:
    """Everything that happened in one round."""

    round: int  # n
    start: Microseconds  # simulated time of the data refresh
    end: Microseconds  # simulated time at which it ended; of the last one, work may go on after that
    # one report for each service, including those that have left, in the scenario's order
    services: tuple[ServiceReport, ...]
    offers: tuple[OfferReport, ...]  # all offers, service by service, in the order in which each service chose
    events: tuple[MarketEvent, ...]  # the timeline, in order of time
    # by name, for each service that acted: the mean local training losses of the clients that served it
    losses: Mapping[str, FloatArray]
    last: bool  # whether no further round follows
    # what each offer was to its client, in the order of ``offers``; None where all clients are truthful
    clients: tuple[ClientReport, ...] | None = None
    responses: tuple[ResponseReport, ...] = ()  # the answers to awards, in the order of ``offers``
    # by name, how many of a service's offers, its last ones, are of contracts: it has not made them in this round
    hired: Mapping[str, int] = field(default_factory=dict)
    models: tuple[ModelReport, ...] = ()  # the models made, where work may outlast the round
    # by name, for each service that acted there: the prices of its offers' clients that are at work as the round ends,
    # 0 for the others, and what has come of earlier offers
    promised: Mapping[str, Sequence[Micro]] = field(default_factory=dict)
    completed: Mapping[str, tuple[Completed, ...]] = field(default_factory=dict)
    length: float = 1.0  # how long it was, in slots: 1 unless events end rounds, too

    @cached_property
    def feedback(self) -> Mapping[str, Feedback]:
        """The feedback on the round to each service that acted, by name."""
        services = {service.service: service for service in self.services}
        return {name: self._feedback(services[name], losses) for name, losses in self.losses.items()}

    def known(self, row: ServiceReport) -> tuple[int, Micro]:
        """Return how many clients serve a service, and what it has paid, as far as it can know as the round ends.

        Of what is still at work at the end of a period, a service cannot know what comes of it.
        """
        late = [it for it in self.offers if it.service == row.service and (it.end or 0) > self.end]
        served = row.served + sum(it.outcome is Outcome.DROPPED for it in late)
        return served, row.spent - sum(it.paid or 0 for it in late)

    def _feedback(self, report: ServiceReport, trained: FloatArray) -> Feedback:
        offers = [offer for offer in self.offers if offer.service == report.service]
        offers = offers[: len(offers) - self.hired.get(report.service, 0)]
        served = np.array([offer.outcome is Outcome.SERVED for offer in offers], dtype=np.bool_)
        losses = np.full(len(offers), np.nan)
        losses[served] = trained[: np.count_nonzero(served)]
        dropped = np.array([offer.outcome is Outcome.DROPPED for offer in offers], dtype=np.bool_)
        paid = np.array([offer.paid or 0 for offer in offers], dtype=np.float64) / MICRO
        promised = None
        if report.service in self.promised:
            promised = read_only(np.array(self.promised[report.service], dtype=np.float64) / MICRO)
        if (late := np.array([(offer.end or 0) > self.end for offer in offers], dtype=np.bool_)).any():
            # Of what is still at work at the end of a period, a service cannot know what comes of it.
            served, dropped = served | late, dropped & ~late
            paid[late], losses[late] = 0.0, np.nan
        return Feedback(
            round=self.round,
            accuracy=report.accuracy,
            reward=report.reward,
            served=read_only(served),
            dropped=read_only(dropped),
            paid=read_only(paid),
            losses=read_only(losses),
            status=report.status,
            promised=promised,
            length=self.length,
            completed=self.completed.get(report.service, ()),
        )
