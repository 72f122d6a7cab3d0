"""The timeline of one round, worked out again from its offers: what happens, when, and in which order.

It shares no code with ``des``: a calendar of (time, order) instead of SimPy. What happens at the same time happens in
the order in which it was put into the calendar.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from des.behaviour import TRUTHFUL
from des.log_records import Kind, Outcome
from des.observation import Status
from scenarios.judging.evidence import Logs, Row

AWARDED = (Outcome.SERVED, Outcome.DROPPED)


class Moment(NamedTuple):
    """An event without its amount. The time is in simulated seconds."""

    time: float
    event: Kind
    service: str | None = None
    client: int | None = None
    core: int | None = None


class Slot(NamedTuple):
    """A round's timeline."""

    moments: list[Moment]  # all events, in order
    # start, end, and whether the update arrives, of each awarded offer, by its place in the round's offers
    spans: dict[int, tuple[float, float, bool]]
    end: float  # when the slot ends, simulated seconds


class _Job(NamedTuple):
    """An awarded offer: its place in the round's offers, and how long it takes, seconds."""

    at: int
    offer: Row
    compute: float
    upload: float
    limit: float

    @property
    def arrives(self) -> bool:
        return self.compute + self.upload <= self.limit


class _Play:
    """Plays one round. Only offers of services that take part, to clients that there are, become jobs."""

    def __init__(self, logs: Logs, number: int, start: float) -> None:
        self._start = self._now = start
        self._slot = logs.scenario.timeline.slot
        self._rows = {row["service"]: row for row in logs.rows_of[number] if row["status"].takes_part}
        self._again = offered_again(logs, number, self._rows)
        self._jobs: dict[str, list[_Job]] = defaultdict(list)
        self._awards = list(_jobs(logs, number, self._rows))
        for job in self._awards:
            self._jobs[job.offer["service"]].append(job)
        self._left = {name: len(jobs) for name, jobs in self._jobs.items()}
        self._moments: list[Moment] = []
        self._starts: dict[int, float] = {}
        self._spans: dict[int, tuple[float, float, bool]] = {}
        self._calendar: list[tuple[float, int, str, str | _Job]] = []
        self._order = count()

    def play(self) -> Slot:
        self._note(Kind.REFRESH)
        for kind in (Kind.BID, Kind.DECISION):
            for name in self._rows:
                self._note(kind, name)
        for name in self._again:
            self._note(Kind.DECISION, name)
        for job in self._awards:
            self._note_job(Kind.AWARD, job)
        for name in self._rows:
            for job in self._jobs[name]:
                self._at(0.0, "begins", job)
            if not self._jobs[name]:
                self._close(name)
        while self._calendar:
            self._now, _, step, subject = heappop(self._calendar)
            if isinstance(subject, _Job):
                self._advance(step, subject)
            else:
                self._close(subject)
        end = self._now
        if self._slot is not None:
            end += max(0.0, self._start + self._slot - end)
        return Slot(self._moments, self._spans, end)

    def _advance(self, step: str, job: _Job) -> None:
        if step == "begins":
            self._starts[job.at] = self._now
            self._note_job(Kind.TRAIN_START, job)
            self._at(min(job.compute, job.limit), "has trained" if job.compute <= job.limit else "ends", job)
        elif step == "has trained":
            self._note_job(Kind.TRAIN_END, job)
            self._at(min(job.upload, job.limit - job.compute), "ends", job)
        else:
            self._spans[job.at] = self._starts[job.at], self._now, job.arrives
            if job.arrives:
                self._note_job(Kind.UPLOAD, job)
            name = job.offer["service"]
            self._left[name] -= 1
            if not self._left[name]:
                self._at(0.0, "closes", name)

    def _close(self, name: str) -> None:
        served = [job for job in self._jobs[name] if job.arrives]
        if served:
            self._note(Kind.AGGREGATE, name)
            self._note(Kind.EVALUATE, name)
        for job in served:
            self._note(Kind.PAY, name, job.offer["client"])
        if self._rows[name]["status"] is Status.REACHED:
            self._note(Kind.EXIT, name)

    def _at(self, delay: float, step: str, subject: "str | _Job") -> None:
        heappush(self._calendar, (self._now + delay, next(self._order), step, subject))

    def _note(self, kind: Kind, service: str | None = None, client: int | None = None, core: int | None = None) -> None:
        self._moments.append(Moment(self._now, kind, service, client, core))

    def _note_job(self, kind: Kind, job: _Job) -> None:
        self._note(kind, job.offer["service"], job.offer["client"], job.offer["core"])


def offered_again(logs: Logs, number: int, active: Mapping[str, Row]) -> list[str]:
    """Return the services that offered again after their first offers, in order, where the mechanism lets them.

    The rule ``clearing`` checks that these are the ones that had been refused.
    """
    if logs.conditions(number).paper:
        return []
    decided = [row["service"] for row in logs.events_in.get(number, []) if row["event"] is Kind.DECISION]
    return [name for name in decided[len(active) :] if name in active]


def slot(logs: Logs, number: int, start: float) -> Slot:
    """Return the timeline of a round that begins at ``start``, given its offers' outcomes (outbid or not) and cores."""
    return _Play(logs, number, start).play()


def _jobs(logs: Logs, number: int, active: Sequence[str] | dict[str, Row]) -> Iterator[_Job]:
    clock, population = logs.scenario.timeline, logs.population
    patience = min(limit for limit in (clock.slot, clock.deadline, float("inf")) if limit is not None)
    epochs = {it.name: logs.scenario.training_for(it.dataset).local_epochs for it in logs.scenario.services}
    for at, offer in enumerate(logs.offers_in.get(number, [])):
        client, name = offer["client"], offer["service"]
        if offer["outcome"] not in AWARDED or name not in active or name not in epochs:
            continue
        if not 0 <= client < population.spec.count:
            continue
        size = offer["data_size"]
        if logs.scenario.clients.behaviour.kind != TRUTHFUL:  # it may report other data than it trains on
            size = int(logs.held(number).data_size[logs.places[name], client])
        work = size * epochs[name] * clock.seconds_per_sample / float(population.speed[client])
        part = population.departs(number, client)
        limit = patience if part is None else min(patience, part * (work + clock.upload_seconds))
        yield _Job(at, offer, work, clock.upload_seconds, limit)
