"""The work of a continuous market, followed again from its offers: awards, arrivals, models, and all their events.

It shares no code with ``des.ongoing``. Where work outlasts rounds, what stands in a line of offers.csv follows from
offers of earlier rounds, whose clients are still at work.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from des.allocation import NO_CORE
from des.clients.population import Qualities
from des.log_records import Kind, ModelReport, Outcome
from des.mechanism import Book, Mechanism, RoundView, clearing_of
from des.money import MICRO
from des.observation import Status
from fl.arrays import AnyArray, FloatArray, IntArray
from fl.surrogate.learning_curves import SurrogateFederation
from fl.training.jobs import Delivery, TrainingJob
from fl.training.trigger import Gathered, Trigger, agrees, share_of
from flmarket.analysis.verification.durations import Timed, durations
from flmarket.analysis.verification.findings import Rows
from scenarios.build import cores_of
from scenarios.file.interventions import at as conditions_at


class Followable(Timed, Protocol):
    """What the work of a block of rounds follows from: a part of ``Logs``."""

    @property
    def numbers(self) -> range: ...

    @property
    def last(self) -> bool: ...

    @property
    def places(self) -> Mapping[str, int]: ...

    @property
    def rows(self) -> Mapping[str, Rows]: ...

    @property
    def answered(self) -> Rows: ...

    @property
    def online(self) -> Mapping[int, list[tuple[int, int]]] | None: ...

    @property
    def held_sizes(self) -> IntArray: ...

    def span_of(self, number: int) -> slice: ...

    def jobs(self, number: int, offers: Rows) -> list[TrainingJob]: ...

    def accuracies_after(self, number: int) -> FloatArray: ...

    def round_view(self, number: int, world: Qualities, wanting: IntArray) -> RoundView: ...

    def tie_order(self, number: int | IntArray, client: int | IntArray) -> FloatArray: ...


class Begun(NamedTuple):
    """A job that has begun."""

    m: int
    client: int
    core: int
    round: int
    model: int  # the number of the model that it was handed out
    price: int
    samples: int
    delivers: bool


@dataclass
class Sofar:
    """What is left of the rounds so far."""

    now: int  # microseconds
    models: list[int]  # how many each service has made
    arrived: list[list[Begun]]  # what has arrived for each service and is in no model
    # what ends when: first training, or jobs that are cut off in it, then jobs, by when they were trained, and in the
    # order of beginnings; and whether that is the job
    agenda: list[tuple[int, bool, int, int, bool, Begun]] = field(default_factory=list)
    begun: int = 0
    # [M] the prices of jobs that were lost in the last round, less those of jobs that began in it
    kept: list[int] = field(default_factory=list)
    federation: SurrogateFederation | None = None  # where the learning curves have come to; None: not known

    def working(self) -> list[Begun]:
        """Return who is at work, in the order of beginnings."""
        return [job for *_, ends, job in sorted(self.agenda, key=lambda it: it[3]) if ends]


@dataclass
class Followed:
    """What the offers of a block of rounds lead to."""

    # columns of offers.csv: outcome, core, start, end and paid; and ``barred``, whether the service could not have the
    # client, as it works for it, or as the service waits for others first
    offers: dict[str, AnyArray]
    events: list[tuple[Any, ...]] = field(default_factory=list)  # rows of events.csv
    models: list[ModelReport] = field(default_factory=list)  # rows of models.csv
    closed: list[int] = field(default_factory=list)  # [rounds] when each ends, and services leave that leave with it
    # [rounds][M] the prices of clients at work, as a round begins, that will not deliver
    lost: list[list[int]] = field(default_factory=list)
    kept: list[list[int]] = field(default_factory=list)  # [rounds][M] as in ``Sofar``, before each round
    renewed: list[list[bool]] = field(default_factory=list)  # [rounds][M] whether the service makes a model
    accuracy: list[list[float]] = field(default_factory=list)  # [rounds][M] on the learning curves; NaN: not known


def follow(
    logs: Followable, sofar: Sofar, triggers: Sequence[Trigger], mechanism_of: Mapping[int, Mechanism]
) -> tuple[Followed, Sofar]:
    """Follow a block of rounds, whose mechanisms are given by round; return also where it leaves the market.

    Raises:
        ClearingError: offers cannot be cleared again.
    """
    follower = _Follower(logs, deepcopy(sofar), triggers)
    for number in logs.numbers:
        follower.play(number, mechanism_of[number])
    return follower.found, follower.sofar


class _Follower:
    def __init__(self, logs: Followable, sofar: Sofar, triggers: Sequence[Trigger]) -> None:
        self.logs, self.sofar, self._triggers = logs, sofar, triggers
        self._names = list(logs.places)
        rows = logs.answered.having(data_size=logs.held_sizes)
        self._compute, self._upload, self._limit = durations(logs, rows)
        count = len(rows)
        nothing = {name: np.full(count, np.nan) for name in ("core", "start", "end", "paid")}
        outcome = np.full(count, Outcome.OUTBID, dtype=object)
        self.found = Followed({"outcome": outcome, "barred": np.zeros(count, dtype=np.bool_), **nothing})
        self._now = sofar.now

    def play(self, number: int, mechanism: Mechanism) -> None:
        """Follow one round."""
        logs, found, state, count = self.logs, self.found, self.sofar, len(self._names)
        first = (number - logs.numbers.start) * count
        status = logs.rows["rounds"]["status"][first : first + count].tolist()
        active = [m for m in range(count) if Status(status[m]).takes_part]
        self._number, self._now, made = number, state.now, len(found.models)
        self._lost(active)
        self._open(number, mechanism, active)
        slot = round((logs.scenario.timeline.slot or 0) * MICRO)
        until = state.now - state.now % slot + slot
        self._expect(until)
        self._begin(None)
        decided = self._work(until, active)
        self._coming.clear()
        if not decided:
            self._now = until
            for m in active:
                self._model(m, closing=True)
        found.closed.append(self._now)
        renewed = {it.service for it in found.models[made:]}
        found.renewed.append([name in renewed for name in self._names])
        found.accuracy.append(
            [np.nan if state.federation is None else state.federation.accuracy(name) for name in self._names]
        )
        for m in active:
            accuracy = logs.accuracies_after(number)[m]
            if self._names[m] in renewed:
                self._event(Kind.EVALUATE, m, amount=accuracy)
            if Status(status[m]).leaves:
                self._event(Kind.EXIT, m, amount=accuracy)
                state.arrived[m].clear()
                if state.federation is not None:
                    state.federation.forget(self._names[m])
        if logs.last and number == logs.numbers[-1]:
            self._work(None, [])
        state.now = self._now

    def _lost(self, active: Sequence[int]) -> None:
        """Note what is held for clients that will not deliver, and which offers services cannot make."""
        lost, working = [0] * len(self._names), self.sofar.working()
        for job in working:
            lost[job.m] += 0 if job.delivers else job.price
        self.found.lost.append(lost)
        self.found.kept.append(self.sofar.kept or [0] * len(lost))
        self.sofar.kept = [0] * len(lost)
        waiting = set()
        for m in active:
            gathered = self._gathered(m, closing=False)
            if not agrees(self._triggers[m], "recruits", gathered, self._names[m], self._number):
                waiting.add(m)
        for_whom = {(job.m, job.client) for job in working}
        rows, span = self.logs.rows["offers"], self.logs.span_of(self._number)
        pairs = zip(rows["m"][span].tolist(), rows["client"][span].tolist(), strict=True)
        self.found.offers["barred"][span] = [m in waiting or (m, client) in for_whom for m, client in pairs]

    def _open(self, number: int, mechanism: Mechanism, active: Sequence[int]) -> None:
        """Let a round's offers stand."""
        logs, span = self.logs, self.logs.span_of(number)
        rows = logs.rows["offers"]
        people = conditions_at(logs.scenario, number).clients
        own = cores_of(people)
        self._capacity = np.full(people.count, people.cores) if own is None else own
        self._first, self._mechanism = span.start, mechanism
        services, clients, payments, bids = (rows[name][span] for name in ("m", "client", "payment", "bid"))
        begin = (number - logs.numbers.start) * len(self._names)
        budgets = logs.rows["rounds"]["budget"][begin : begin + len(self._names)]
        ties = partial(logs.tie_order, number)
        self._book = Book(services, clients, payments, bids, bids, budgets, people.cores, ties)
        self._standing: dict[int, list[int]] = defaultdict(list)
        for row, client in enumerate(clients.tolist()):
            self._standing[client].append(row)
        self._jobs: dict[tuple[str, int], TrainingJob] = {}
        if self.sofar.federation is not None:
            try:
                self._jobs = {(it.service, it.client): it for it in logs.jobs(number, rows.where(span))}
            except (LookupError, ValueError, ArithmeticError):  # no data size or EMD of this scenario
                self.sofar.federation = None
        self._event(Kind.REFRESH)
        for m in active:
            self._event(Kind.BID, m, amount=np.inf)  # which other rules check
        for m in active:
            self._event(Kind.DECISION, m, amount=int(payments[services == m].sum()))

    def _begin(self, freed: Sequence[int] | None) -> None:
        """Award the free cores of clients, of all if it is not said of which, and let their jobs begin."""
        state, taken = self.sofar, defaultdict(set)
        for job in state.working():
            taken[job.client].add(job.core)
        free = self._capacity.copy()
        for client, cores in taken.items():
            free[client] -= len(cores)
        clients: Iterable[int] = self._standing
        if freed is not None:
            clients = set(freed)
        slot, since = divmod(self._now, round((self.logs.scenario.timeline.slot or 0) * MICRO))
        if freed is not None or since:  # who leaves in a slot takes no work after its start
            clients = [it for it in clients if self.logs.population.departs(slot + 1, it) is None]
        clients = [it for it in clients if self._goes(it) > self._now]
        rows = np.array(sorted(it for c in clients if free[c] > 0 for it in self._standing.get(c, ())), dtype=np.int64)
        if not len(rows):
            return
        book = self._book.some(rows, free)
        if self._mechanism.clears_standing:
            stand = self._book.services[sorted(chain.from_iterable(self._standing.values()))]
            world = self.logs.population.draw(slot + 1)
            book = replace(book, view=partial(self.logs.round_view, self._number, world, stand))
        cleared = clearing_of(self._mechanism, book, self._number)
        begun = []
        for place in np.flatnonzero(cleared.core != NO_CORE).tolist():
            row, client = int(rows[place]), int(book.clients[place])
            core = [it for it in range(len(taken[client]) + self._book.cores) if it not in taken[client]][
                int(cleared.core[place])
            ]
            begun.append(self._award(row, client, core, int(cleared.price[place])))
        for job in begun:
            self._event(Kind.TRAIN_START, job.m, job.client, job.core)

    def _expect(self, until: int) -> None:
        """Note who comes before an instant: those with an offer, or all who make services decide again."""
        own = self.logs.online or {}
        who = own if "free" in self.logs.scenario.timeline.decide else self._standing
        times = ((begin, client) for client in who for begin, _ in own.get(client, ()))
        self._coming = deque(sorted(it for it in times if self._now < it[0] < until))

    def _goes(self, client: int) -> float:
        """Return when a client that is there goes; 0 for one that is not there."""
        if self.logs.online is None:
            return np.inf
        return next((end for begin, end in self.logs.online[client] if begin <= self._now < end), 0)

    def _award(self, row: int, client: int, core: int, price: int) -> Begun:
        state, at, logs = self.sofar, self._first + row, self.logs
        compute, limit = int(self._compute[at]), int(self._limit[at])
        if logs.scenario.clients.offline_work == "lost":
            limit = int(min(limit, self._goes(client) - self._now))
        whole, m = compute + int(self._upload[at]), int(self._book.services[row])
        delivers, end = whole <= limit, self._now + min(whole, limit)
        self._standing[client].remove(row)
        values = Outcome.SERVED if delivers else Outcome.DROPPED, core, self._now, end, price if delivers else np.nan
        for name, value in zip(("outcome", "core", "start", "end", "paid"), values, strict=True):
            self.found.offers[name][at] = value
        samples = int(logs.rows["offers"]["data_size"][at])
        job = Begun(m, client, core, self._number, state.models[m], price, samples, delivers)
        state.begun += 1
        state.kept[m] -= price
        if trains := compute <= limit:
            heappush(state.agenda, (self._now + compute, False, 0, state.begun, False, job))
        heappush(state.agenda, (end, trains, self._now + compute if trains else 0, state.begun, True, job))
        if delivers and state.federation is not None:
            state.federation.begin(self._number, [self._jobs[self._names[m], client]])
        self._event(Kind.AWARD, m, client, core, int(self._book.payments[row]))
        return job

    def _work(self, until: int | None, staying: Sequence[int]) -> bool:
        """Follow what ends up to an instant; until nobody is at work if there is none.

        Return whether services decide again before, as something happens.
        """
        agenda, coming, start, decide = self.sofar.agenda, self._coming, self._now, self.logs.scenario.timeline.decide
        while heads := [it[0][0] for it in (agenda, coming) if it]:
            if until is not None and min(heads) > until:
                break
            self._now, freed, models = min(heads), list[int](), len(self.found.models)
            while agenda and agenda[0][0] == self._now:
                *_, ends, job = heappop(agenda)
                if not ends:
                    self._event(Kind.TRAIN_END, job.m, job.client, job.core)
                    continue
                freed.append(job.client)
                if job.delivers:
                    self._event(Kind.UPLOAD, job.m, job.client, job.core)
                    self._event(Kind.PAY, job.m, job.client, amount=job.price)
                    if job.m in staying:
                        self._arrive(job)
                else:
                    self.sofar.kept[job.m] += job.price
                if job.m in staying:
                    self._model(job.m, closing=False)
            while coming and coming[0][0] == self._now:
                freed.append(coming.popleft()[1])
            if until is None or self._now == until:
                continue
            if self._now > start and (
                ("free" in decide and freed) or ("model" in decide and len(self.found.models) > models)
            ):
                return True
            if staying:
                self._begin(freed)
        return False

    def _arrive(self, job: Begun) -> None:
        """Take an update, unless it is one that counts nothing by now."""
        state, stale = self.sofar, self.sofar.models[job.m] - job.model
        if share_of(self._triggers[job.m], stale) > 0:
            state.arrived[job.m].append(job)
        elif state.federation is not None:
            state.federation.forget(self._names[job.m], [Delivery(job.round, job.client, stale)])

    def _gathered(self, m: int, *, closing: bool) -> Gathered:
        own = [job for job in self.sofar.working() if job.m == m]
        late = [job for job in own if job.model < self.sofar.models[m]]
        return Gathered(len(self.sofar.arrived[m]), len(own), closing, len(late))

    def _model(self, m: int, *, closing: bool) -> None:
        """Let a service make its next model, if its trigger says so."""
        state, arrived, name = self.sofar, self.sofar.arrived[m], self._names[m]
        gathered = self._gathered(m, closing=closing)
        if not arrived or not agrees(self._triggers[m], "due", gathered, name, self._number):
            return
        stale = [state.models[m] - job.model for job in arrived]
        state.models[m] += 1
        if state.federation is not None:
            taken = [Delivery(job.round, job.client, old) for job, old in zip(arrived, stale, strict=True)]
            state.federation.aggregate(name, state.models[m], taken, self._triggers[m])
        self._event(Kind.AGGREGATE, m, amount=sum(job.samples for job in arrived))
        of = self._number, self._now, name, state.models[m], len(arrived), sum(stale) / len(stale), max(stale)
        self.found.models.append(ModelReport(*of, gathered.at_work))
        arrived.clear()

    def _event(
        self,
        kind: Kind,
        m: int | None = None,
        client: float = np.nan,
        core: float = np.nan,
        amount: float = np.nan,
    ) -> None:
        service = np.nan if m is None else self._names[m]
        self.found.events.append((self._number, self._now, kind, service, client, core, amount))
