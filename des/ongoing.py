"""Work that outlasts the period in which it begins: jobs at work, updates that arrive one by one, models of any age.

Where ``timeline.mode`` is ``"continuous"``, a round is a period at whose start services offer for the cores that are
free then: a slot, or what an event leaves of it after which services decide again. Nobody waits for anybody else: an
update arrives when it arrives, is paid at that instant, and becomes part of its service's model when the service's
trigger says so (``fl.training.trigger``). Between periods all of that is plain data, as in slots.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import simpy

from des.clock import Microseconds
from des.ledger import Ledger
from des.log_records import Kind, ModelReport, Outcome
from des.money import MICRO, Micro, to_micro
from des.observation import Completed, Progress
from des.timeline import Clock, Durations, Job, Journal, Shift
from fl.arrays import BoolArray, read_only
from fl.training.jobs import Asynchronous, Delivery
from fl.training.trigger import Gathered, Trigger, agrees, share_of


class AtWork(NamedTuple):
    """A job at work, its times known from its award on."""

    m: int  # its service
    round: int  # the period in which it began
    model: int  # the number of the model that it was handed out, 0 for the first
    job: Job
    loss: float | None  # the client's mean local loss; None: its update will not arrive


class Arrival(NamedTuple):
    """An update that has arrived and is in no model yet."""

    round: int  # in which the client began
    client: int
    model: int  # the one that it was handed out
    samples: int  # D, the images that the client says it has trained on


class Ongoing:
    """What services have at work, what has arrived for them, and how many models they have made."""

    def __init__(
        self,
        names: Sequence[str],  # of the services
        triggers: Sequence[Trigger],  # of each service
        federation: Asynchronous,
        timeline: Durations,
        clients: int,  # how many there are
        clock: Clock,
    ) -> None:
        self._names, self._triggers, self.federation = tuple(names), tuple(triggers), federation
        self._slot = to_micro(timeline.period or 0)
        self._decide = frozenset(timeline.decide)
        self._last = -self._slot  # when the last period began that is over; as if one were before the first
        # a trigger answers alike when asked again
        self._shares = [cache(partial(share_of, it, service=name)) for it, name in zip(triggers, names, strict=True)]
        self._arrived: list[list[Arrival]] = [[] for _ in names]
        self.models = [0] * len(names)  # how many each service has made
        # [M] what has come in the last period of offers of earlier ones
        self.completed: list[list[Completed]] = [[] for _ in names]
        self._busy = np.zeros((len(names), clients), dtype=np.bool_)  # who works for whom
        self._count((), clock)

    def _count(self, works: Sequence[AtWork], clock: Clock) -> None:
        """Let just these be at work."""
        self._clock, self._shift = clock, Shift(clock, [work.job for work in works])
        self._at_work: dict[int, AtWork] = {}  # by their numbers
        self._working = [0] * len(self._names)  # for each service
        self._begun_with = [0] * len(self._names)  # the sum of the models that those at work have begun with
        self._late = [0] * len(self._names)  # how many of them began with an older model than its last one
        self.taken: dict[int, set[int]] = {}  # the cores at work of each client that has any
        self._busy[:] = False
        for number, work in enumerate(works, start=1):
            self._begin(number, work)

    def _begin(self, number: int, work: AtWork) -> None:
        m, job = work.m, work.job
        self._at_work[number] = work
        self._working[m] += 1
        self._begun_with[m] += work.model
        self._late[m] += work.model < self.models[m]
        self._busy[m, job.client] = True
        self.taken.setdefault(job.client, set()).add(job.core)

    def _end(self, number: int) -> AtWork:
        work = self._at_work.pop(number)
        m, job = work.m, work.job
        self._working[m] -= 1
        self._begun_with[m] -= work.model
        self._late[m] -= work.model < self.models[m]
        self._busy[m, job.client] = False
        cores = self.taken[job.client]
        cores.remove(job.core)
        if not cores:
            del self.taken[job.client]
        return work

    def progress(self, m: int, now: Microseconds) -> Progress:
        """Return what a service knows of its own work as a period begins."""
        models, count = self.models[m], self._working[m]
        staleness = (models * count - self._begun_with[m]) / count if count else 0.0
        since = now - self._last if self._last >= 0 else 0
        return Progress(now / MICRO, models, count, staleness, since / MICRO)

    def slot(self, now: Microseconds) -> int:
        """Return the number of the slot, from 1, that an instant is in, or begins."""
        return now // self._slot + 1

    def slots(self, time: Microseconds) -> float:
        """Return how many slots a time is."""
        return time / self._slot

    def comes_in(self, budget: Micro, arrival: int, now: Microseconds) -> Micro:
        """Return what comes in of a budget of each slot from the start of the last period to that of the next one.

        The sum over whole slots is the budget, to the micro-unit. A service has a whole one with its first period,
        which is the first one that begins in the slot of its arrival or later.
        """
        if arrival > self.slot(self._last):
            return budget
        return budget * now // self._slot - budget * self._last // self._slot

    def serves(self, number: int, able: BoolArray | None) -> BoolArray | None:
        """Return who can serve whom in a period, [M, C]: clients that do not work for the service already.

        A service that waits for others first can have nobody. None if all can serve all.
        """
        waiting = []
        for m, (name, trigger) in enumerate(zip(self._names, self._triggers, strict=True)):
            if not agrees(trigger, "recruits", self._gathered(m, closing=False), name, number):
                waiting.append(m)
        if not self._at_work and not waiting:
            return able
        mask = ~self._busy if able is None else able & ~self._busy
        mask[waiting] = False
        return read_only(mask)

    def play(
        self,
        number: int,  # the period
        journal: Journal,
        ledger: Ledger,
        staying: Collection[int],  # the services that still make models
        # None: nobody offers, and the period lasts until nobody is at work
        award: Callable[[Collection[int] | None, Collection[int]], Sequence[tuple[int, Job, float | None]]] | None,
        coming: Iterable[tuple[Microseconds, int]] = (),  # when which clients come until the end of the slot, in order
    ) -> Generator[simpy.Event, Any, list[ModelReport]]:
        """Play a period, to the end of its slot or an event after which services decide; return the models made in it.

        ``award`` returns the jobs that are awarded now on cores of clients that have free ones, of all clients where it
        is not told of which, and who have come, with their services and losses. They begin at once. It is asked as the
        period begins, and whenever work has ended or clients come, but at its end: then offers have expired.
        """
        clock, freed, made, models = self._clock, list[int](), list[ModelReport](), 0
        start, until = clock.now, None if award is None else self.slot(clock.now) * self._slot
        decided = False  # whether an event ends the period
        if award is not None:
            self.completed = [[] for _ in self._names]

        def begin(clients: Collection[int] | None, came: Collection[int] = ()) -> None:
            for m, job, loss in award(clients, came) if award else ():
                self._begin(self._shift.begin(job), AtWork(m, number, self.models[m], job, loss))
                journal.record(Kind.TRAIN_START, job.service, job.client, job.core)

        def end(place: int, job: Job) -> None:
            work = self._end(place)
            self._deliver(work, journal, ledger)
            if work.round < number:
                self._tell(work)
            freed.append(job.client)
            if work.m in staying:
                made.extend(self._models(work.m, number, journal, closing=False))

        def over(came: Collection[int]) -> bool:
            nonlocal decided, models
            if self._decide and award is not None and start < clock.now != until:
                happened = ("free", freed or came), ("model", made[models:])
                decided = any(of for event, of in happened if event in self._decide)
            if (freed or came) and clock.now != until and not decided:
                begin(freed, came)
            freed.clear()
            models = len(made)
            return decided

        begin(None)
        yield from self._shift.play(journal, end, until, over, coming)
        if until is not None and not decided:
            if until > clock.now:
                yield clock.timeout(until - clock.now)
            for m in sorted(staying):
                made += self._models(m, number, journal, closing=True)
        for m, arrived in enumerate(self._arrived):
            if m not in staying:
                arrived.clear()
        self._last = start
        return made

    def _deliver(self, work: AtWork, journal: Journal, ledger: Ledger) -> None:
        """Let a job's update arrive and be paid, or be lost."""
        job, stale = work.job, self.models[work.m] - work.model
        if job.outcome is Outcome.SERVED:
            journal.record(Kind.UPLOAD, job.service, job.client, job.core)
            ledger.pay_committed(job.service, job.client, job.price)
            journal.record(Kind.PAY, job.service, job.client, amount=job.price)
            if self._shares[work.m](stale) > 0:
                self._arrived[work.m].append(Arrival(work.round, job.client, work.model, job.samples))
            else:
                self.federation.forget(job.service, [Delivery(work.round, job.client, stale)])
        else:
            ledger.forfeit(job.service, job.price)

    def _tell(self, work: AtWork) -> None:
        """Let a service know what has come of an earlier offer."""
        job, loss = work.job, np.nan if work.loss is None else work.loss
        price = job.price / MICRO
        paid = price if job.outcome is Outcome.SERVED else 0.0
        self.completed[work.m].append(Completed(work.round, job.client, price, paid, loss))

    def _gathered(self, m: int, *, closing: bool) -> Gathered:
        return Gathered(len(self._arrived[m]), self._working[m], closing, self._late[m])

    def _models(self, m: int, number: int, journal: Journal, *, closing: bool) -> Iterator[ModelReport]:
        """Make the next model of a service, if it is due."""
        arrived, trigger, name = self._arrived[m], self._triggers[m], self._names[m]
        if not arrived or not agrees(trigger, "due", self._gathered(m, closing=closing), name, number):
            return
        made = self.models[m]
        deliveries = [Delivery(it.round, it.client, made - it.model) for it in arrived]
        self.models[m], self._late[m] = made + 1, self._working[m]
        self.federation.aggregate(name, made + 1, deliveries, trigger)
        journal.record(Kind.AGGREGATE, name, amount=sum([it.samples for it in arrived]))
        staleness = [it.staleness for it in deliveries]
        yield ModelReport(
            number,
            journal.now,
            name,
            made + 1,
            len(arrived),
            sum(staleness) / len(staleness),
            max(staleness),
            self._working[m],
        )
        arrived.clear()

    def state(self) -> dict[str, Any]:
        """Return all of this as plain data. The federation keeps the updates themselves."""
        return {
            "at_work": [[*work[:3], asdict(work.job), work.loss] for work in self._at_work.values()],
            "arrived": [[list(it) for it in own] for own in self._arrived],
            "models": list(self.models),
            "last": self._last,
        }

    def restore(self, state: Mapping[str, Any], clock: Clock) -> None:
        """Continue from a ``state``."""
        self.models = list(state["models"])
        works = [
            AtWork(m, begun, model, Job(**{**job, "outcome": Outcome(job["outcome"])}), loss)
            for m, begun, model, job, loss in state["at_work"]
        ]
        self._count(works, clock)
        self._arrived = [[Arrival(*it) for it in own] for own in state["arrived"]]
        self._last = state["last"]
