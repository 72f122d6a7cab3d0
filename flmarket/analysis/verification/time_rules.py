"""The rule of ``flmarket verify`` on time: each round is played again from its offers, on a calendar of its own.

It shares no code with ``des``: what happens at the same time happens in the order in which it was put into the
calendar.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count, zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from des.log_records import Kind, Outcome
from des.observation import Status
from flmarket.analysis.tables import lines_of
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import differing

_ABSENT = (Status.LEFT, Status.WAITING)


class Moment(NamedTuple):
    """A line of events.csv; NaN stands for nothing."""

    round: int
    sim_time: float
    event: str
    service: object = np.nan
    client: float = np.nan
    core: float = np.nan
    amount: float | None = np.nan  # None: other rules say which


class _Job(NamedTuple):
    """An awarded offer, a line of offers.csv, and how long it takes, seconds."""

    offer: Any
    compute: float
    upload: float
    limit: float

    @property
    def arrives(self) -> bool:
        return self.compute + self.upload <= self.limit


def timeline(logs: Logs) -> Iterator[str]:
    """Each event, start and end is at the time and in the place that the scenario's durations give it; no gaps."""
    rounds, offers = _by_round(logs.rounds), _by_round(logs.offers)
    decisions = _by_round(logs.events[logs.events["event"] == Kind.DECISION])
    spans: dict[int, tuple[float, float, str]] = {}
    moments, ends, start = [], [], 0.0
    for number in logs.numbers:
        there = {row.service: row for row in rounds[number] if row.status not in _ABSENT}
        # Some mechanisms let services offer again; the rule ``cores`` checks that these are the ones refused.
        deciding = [] if logs.conditions(number).paper else [row.service for row in decisions[number]]
        jobs = [job for offer in offers[number] if offer.service in there for job in _job(logs, number, offer)]
        played = _Round(number, there, jobs, deciding[len(there) :], start)
        slot = logs.scenario.timeline.slot
        moments += played.moments
        spans |= played.spans
        ends += [played.now if slot is None else max(played.now, start + slot)] * len(rounds[number])
        start = rounds[number][0].sim_time  # as logged, so that one wrong time is named once
    work = [spans.get(line, (np.nan, np.nan, Outcome.OUTBID)) for line in logs.offers.index]
    yield from differing(
        logs.offers, pd.DataFrame(work, columns=["start", "end", "outcome"]), "the durations of its steps give"
    )
    yield from differing(logs.rounds, pd.DataFrame({"sim_time": ends}), "its events end at")
    found = [Moment(*line) for line in logs.events[[*Moment._fields]].itertuples(index=False)]
    for line, (one, other) in enumerate(zip_longest(found, moments), start=2):
        if one is None or other is None or not all(map(_same, one, other)):
            yield f"events.csv, line {line}: is {_words(one)}, but should be {_words(other)}"
            break
    decided = logs.events[logs.events["event"] == Kind.DECISION].groupby(["round", "service"])["amount"].sum()
    rows = logs.rounds[~logs.rounds["status"].isin(_ABSENT)]
    wanted = decided.reindex(pd.MultiIndex.from_frame(rows[["round", "service"]]))
    yield from differing(rows, pd.DataFrame({"offered": wanted}), "its decisions come to")


def _by_round(rows: pd.DataFrame) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in lines_of(rows):
        found[row.round].append(row)
    return found


class _Round:
    """Plays one round."""

    def __init__(
        self, number: int, rows: Mapping[str, Any], jobs: Sequence[_Job], again: Sequence[str], start: float
    ) -> None:
        self.moments: list[Moment] = []  # all events, in order
        self.spans: dict[int, tuple[float, float, str]] = {}  # start, end and outcome of each offer, by its line
        self.now, self._number = start, number
        self._rows, self._jobs, self._starts = rows, jobs, dict[int, float]()
        self._left = Counter(job.offer.service for job in jobs)
        self._calendar: list[tuple[float, int, str, str | _Job]] = []
        self._order = count()
        self._play(again)

    def _play(self, again: Sequence[str]) -> None:
        self._note(Kind.REFRESH)
        for name in self._rows:
            self._note(Kind.BID, name, amount=None)
        for name in (*self._rows, *again):
            self._note(Kind.DECISION, name, amount=None)
        for job in self._jobs:
            self._note_job(Kind.AWARD, job, job.offer.payment)
        for name in self._rows:
            for job in self._jobs:
                if job.offer.service == name:
                    self._at(0.0, "begins", job)
            if not self._left[name]:
                self._close(name)
        while self._calendar:
            self.now, _, step, subject = heappop(self._calendar)
            if isinstance(subject, _Job):
                self._advance(step, subject)
            else:
                self._close(subject)

    def _advance(self, step: str, job: _Job) -> None:
        if step == "begins":
            self._starts[job.offer.Index] = self.now
            self._note_job(Kind.TRAIN_START, job)
            self._at(min(job.compute, job.limit), "has trained" if job.compute <= job.limit else "ends", job)
        elif step == "has trained":
            self._note_job(Kind.TRAIN_END, job)
            self._at(min(job.upload, job.limit - job.compute), "ends", job)
        else:
            outcome = Outcome.SERVED if job.arrives else Outcome.DROPPED
            self.spans[job.offer.Index] = self._starts[job.offer.Index], self.now, outcome
            if job.arrives:
                self._note_job(Kind.UPLOAD, job)
            name = job.offer.service
            self._left[name] -= 1
            if not self._left[name]:
                self._at(0.0, "closes", name)

    def _close(self, name: str) -> None:
        row = self._rows[name]
        served = [job for job in self._jobs if job.offer.service == name and job.arrives]
        if served:
            self._note(Kind.AGGREGATE, name, amount=row.samples)
            self._note(Kind.EVALUATE, name, amount=row.accuracy)
        for job in served:
            self._note(Kind.PAY, name, job.offer.client, amount=job.offer.paid)
        if row.status == Status.REACHED:
            self._note(Kind.EXIT, name, amount=row.accuracy)

    def _at(self, delay: float, step: str, subject: "str | _Job") -> None:
        heappush(self._calendar, (self.now + delay, next(self._order), step, subject))

    def _note(self, kind: Kind, *place: Any, amount: float | None = np.nan) -> None:
        self.moments.append(Moment(self._number, self.now, kind, *place)._replace(amount=amount))

    def _note_job(self, kind: Kind, job: _Job, amount: float = np.nan) -> None:
        self._note(kind, job.offer.service, job.offer.client, job.offer.core, amount=amount)


def _job(logs: Logs, number: int, offer: Any) -> Iterator[_Job]:
    """Yield the job that an offer leads to, if it does."""
    clock, population = logs.scenario.timeline, logs.population
    if offer.outcome == Outcome.OUTBID:
        return
    m, size = logs.places[offer.service], offer.data_size
    if logs.clients is not None:  # it may report other data than it trains on
        size = int(logs.held(number).data_size[m, offer.client])
    work = size * logs.epochs[offer.service] * clock.seconds_per_sample / float(population.speed[offer.client])
    limit = min(limit for limit in (clock.slot, clock.deadline, math.inf) if limit is not None)
    part = population.departs(number, offer.client)
    if part is not None:
        limit = min(limit, part * (work + clock.upload_seconds))
    yield _Job(offer, work, clock.upload_seconds, limit)


def _same(one: Any, other: Any) -> bool:
    return other is None or one == other or (one != one and other != other)


def _words(moment: Moment | None) -> str:
    if moment is None:
        return "missing"
    places = {"of": moment.service, "client": moment.client, "core": moment.core, "with": moment.amount}
    parts = [f"{name} {value}" for name, value in places.items() if value is not None and value == value]
    return " ".join((moment.event, *parts, f"at {moment.sim_time} in round {moment.round}"))
