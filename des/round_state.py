"""A round: its conditions, what is collected while it runs, and its report, the rows of the logs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np

from des.clients.population import Qualities
from des.clock import Microseconds
from des.contracts import Contract, with_contracts
from des.log_records import (
    ClientReport,
    ModelReport,
    OfferReport,
    Outcome,
    ResponseReport,
    RoundReport,
    ServiceReport,
)
from des.mechanism import Asks, Book, Clearing, Deliveries
from des.money import Micro
from des.observation import Completed, Observation, Turn
from des.offer_checks import CheckedOffer
from des.reward import reward
from des.schedule import Conditions
from des.service import ServiceSpec, ServiceState
from des.timeline import Job, Journal
from fl.arrays import BoolArray, IntArray, read_only
from fl.training.jobs import TrainingJob, TrainingOutcome


class StandingOffers(NamedTuple):
    """The offers of a period, as places in its book, and what becomes of those that are taken."""

    book: Book
    rows: dict[int, list[int]]  # those that stand, by client
    free: IntArray  # [C] the cores of each client that are free
    # [offers] of each: its place among those of its service, the service, the payment, D as the client reports it, how
    # long the client is busy before it uploads, how long it does, and what it trains on
    terms: Sequence[tuple[int, int, Micro, int, Microseconds, Microseconds, TrainingJob]]


@dataclass(slots=True)
class Round:
    """A round while it runs. Services are identified by their index."""

    number: int  # n, from 1
    rounds: int  # N
    slot: int  # the number of the slot whose data, bids and departures hold: n, unless slots have several decisions
    start: Microseconds  # simulated time of the data refresh
    services: tuple[ServiceSpec, ...]  # all of them, with the budgets of this round
    active: tuple[int, ...]  # those that take part
    conditions: Conditions  # the conditions of the round
    world: Qualities  # the clients' data and bids
    asks: Asks  # what services have to pay at least
    before: tuple[float, ...]  # each service's accuracy after the last round, six decimals; 0 in the first one
    left: tuple[Micro | None, ...]  # what each service has not paid of its budget for the whole run; None: it has none
    journal: Journal  # what has happened so far
    offers: dict[int, CheckedOffer] = field(default_factory=dict)  # the offer of each service that takes part
    # where clients come one after another: what each service saw of the first, has offered so far, and has spent
    seen: dict[int, Observation] = field(default_factory=dict)
    said: dict[int, list[CheckedOffer]] = field(default_factory=dict)
    spent: dict[int, Micro] = field(default_factory=dict)
    book: Book | None = None  # all offers, once cores are allocated
    clearing: Clearing | None = None  # what the mechanism decided on them
    step: int = 0  # how many times services have offered
    offering: tuple[int, ...] = ()  # the services that may offer now
    # the clients that have refused each service, if it may offer again
    lost: dict[int, frozenset[int]] = field(default_factory=dict)
    # the jobs of each service, in the order of its offer; None where it was outbid
    jobs: dict[int, list[Job | None]] = field(default_factory=dict)
    trained: Mapping[str, TrainingOutcome] = field(default_factory=dict)  # what training yielded, by the service's name
    deliveries: tuple[Deliveries, ...] = ()  # what comes of the offers, if the mechanism looks at that
    contracts: tuple[Contract, ...] = ()  # those of earlier rounds, which are served in this one
    due: Mapping[int, Micro] = field(default_factory=dict)  # what these cost services in this round
    hired: dict[int, list[Job]] = field(default_factory=dict)  # the jobs of these, by service
    fees: dict[int, Micro] = field(default_factory=dict)  # what services have paid for the end of contracts
    # the clients as they come one after another, each in a step; empty where all come at once
    turns: Sequence[int] = ()
    standing: StandingOffers | None = None  # the offers, where they stand until the round ends
    # where work may outlast the round: the models made, and what has come of earlier offers, by the service's name
    models: tuple[ModelReport, ...] = ()
    completed: Mapping[str, tuple[Completed, ...]] = field(default_factory=dict)
    end: Microseconds | None = None  # when services decide again, if work may go on meanwhile
    length: float = 1.0  # in slots
    _others: BoolArray | None = None  # [C] whether each client is another one than that whose turn it is
    _served: dict[int, list[Job]] = field(default_factory=dict)  # what ``served`` has returned

    def jobs_of(self, m: int) -> Sequence[Job | None]:
        """Return the jobs of service ``m``, in the order of its offer; those of contracts come last."""
        own = self.jobs.get(m, ())
        return [*own, *self.hired[m]] if m in self.hired else own

    def served(self, m: int) -> list[Job]:
        """Return those of them whose updates arrive, which is certain from the awards on."""
        if m not in self._served:
            self._served[m] = [job for job in self.jobs_of(m) if job and job.outcome is Outcome.SERVED]
        return self._served[m]

    def at_work(self, m: int) -> list[Job]:
        """Return those of them that are begun."""
        return [job for job in self.jobs_of(m) if job and job.outcome is not Outcome.DECLINED]

    @property
    def turn(self) -> Turn | None:
        """The client that comes now, where clients come one after another."""
        return Turn(self.step + 1, len(self.turns), self.turns[self.step]) if self.turns else None

    def unwilling(self, m: int) -> BoolArray | None:
        """Return the clients [C] that service ``m`` cannot have: they do not serve it, or it has tried them already.

        Nor can it have those whose turn it is not. None if there are none.
        """
        offer = self.offers.get(m)
        if self.turns:
            client, count = self.turns[self.step], self.world.bid.shape[1]
            if self.asks.willing is not None and not self.asks.willing[m, client]:
                return read_only(np.ones(count, dtype=np.bool_))
            if self._others is None or self._others[client]:  # one array for all services: turns are many
                others = np.ones(count, dtype=np.bool_)
                others[client] = False
                self._others = read_only(others)
            return self._others
        if self.asks.willing is None and offer is None:
            return None
        mask = np.zeros(self.world.bid.shape[1], dtype=np.bool_) if self.asks.willing is None else ~self.asks.willing[m]
        if offer is not None:
            mask[offer.clients] = True
        mask.setflags(write=False)
        return mask


_NO_LOSSES = np.empty(0)


def round_report(
    current: Round,  # the round
    states: Sequence[ServiceState],  # the states of all services, as the round left them
    *,
    end: Microseconds,  # simulated time at which it ended
    last: bool,  # whether no further round follows
    truthful: bool,  # whether clients tell the truth, so that what they know stands in their offers already
) -> RoundReport:
    """Return everything that happened in a round that was played to its end."""
    rows = iter(_offer_reports(current))
    offers = {m: list(islice(rows, len(current.jobs_of(m)))) for m in current.jobs}
    names = [spec.name for spec in current.services]
    trained = {names[m]: current.trained.get(names[m]) for m in current.active}
    return RoundReport(
        round=current.number,
        start=current.start,
        end=end,
        services=tuple(
            ServiceReport.of(
                spec,
                state,
                reward(spec, state),
                offers.get(m, ()),
                sum([job.samples for job in current.served(m)]),
                current.fees.get(m, 0),
            )
            for m, (spec, state) in enumerate(zip(current.services, states, strict=True))
        ),
        offers=tuple(chain.from_iterable(offers.values())),
        events=tuple(current.journal.events),
        losses={name: _NO_LOSSES if outcome is None else outcome.losses for name, outcome in trained.items()},
        last=last,
        clients=None if truthful else tuple(chain.from_iterable(_client_reports(current, offers))),
        responses=() if truthful else tuple(_response_reports(current)),
        hired={names[m]: len(jobs) for m, jobs in current.hired.items()},
        models=current.models,
        promised={
            name: [0 if job is None or (job.end or 0) <= end else job.price for job in current.jobs_of(m)]
            for m, name in enumerate(names)
            if name in current.completed
        },
        completed=current.completed,
        length=current.length,
    )


def _response_reports(current: Round) -> Iterator[ResponseReport]:
    """Yield the rows of responses.csv, in the order of offers.csv."""
    for job in chain.from_iterable(current.jobs.values()):
        if job is not None and job.cost is not None:
            yield ResponseReport(current.number, job.service, job.client, job.promised, job.done)


def _offer_reports(current: Round) -> list[OfferReport]:
    """Return the rows of offers.csv, service by service: offers as each chose, then what it has by contracts."""
    if (book := current.book) is None:
        return []
    owed = [(it.service, it.client, it.price) for it in current.contracts]
    services, clients, payments = with_contracts((book.services, book.clients, book.payments), owed)
    if not len(clients):
        return []
    data, names = current.world.some(services, clients), [spec.name for spec in current.services]
    fate: list[list[Any]] = [[value] * len(clients) for value in (None, Outcome.OUTBID, None, None, None)]
    paid, outcome, core, start, end = fate
    for at, job in enumerate(chain.from_iterable(map(current.jobs_of, current.jobs))):
        if job is not None:
            paid[at] = job.price if job.outcome is Outcome.SERVED else None
            outcome[at], core[at], start[at], end[at] = job.outcome, job.core, job.start, job.end
    columns = (
        repeat(current.number),
        [names[m] for m in services.tolist()],
        clients.tolist(),
        data.data_size.tolist(),
        data.emd.tolist(),
        data.dqi.tolist(),
        current.world.bid[services, clients].tolist(),
        payments.tolist(),
        *fate,
    )
    return list(map(tuple.__new__, repeat(OfferReport), zip(*columns, strict=False)))  # _make, without its Python code


def _client_reports(current: Round, offers: Mapping[int, Sequence[OfferReport]]) -> Iterator[list[ClientReport]]:
    """Yield each service's rows of clients.csv, given all rows of offers.csv by service."""
    held = current.world.held
    for m, reports in offers.items():
        costs = [
            int(held.cost[m, offer.client]) if job is None or job.cost is None else job.cost
            for offer, job in zip(reports, current.jobs_of(m), strict=True)
        ]
        yield [
            ClientReport(
                offer.round,
                offer.service,
                offer.client,
                int(held.data_size[m, offer.client]),
                offer.data_size,
                float(held.emd[m, offer.client]),
                offer.emd,
                cost,
                offer.bid,
                offer.paid,
                None if offer.paid is None else offer.paid - cost,
            )
            for offer, cost in zip(reports, costs, strict=True)
        ]
