"""The timeline of a round: jobs, the clients that work on them on the market's clock, and the journal of events."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import simpy

from des.clock import NEVER, Microseconds
from des.log_records import Kind, MarketEvent, Outcome
from des.money import MICRO, Micro, to_micro


class Clock(simpy.Environment):
    """SimPy's event loop on a clock of whole microseconds, from 0 on."""

    _now: Microseconds

    @property
    def now(self) -> Microseconds:
        return self._now


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations, in simulated seconds; the properties are in microseconds."""

    seconds_per_sample: float  # time to train on one image in one epoch, on a client of speed 1
    upload_seconds: float  # time to send the update, with six decimals as what follows
    # length of a slot, by whose end all work ends; with None, each lasts until its last job is done (the paper's "long
    # enough")
    slot: float | None = None
    # time after the awards by which an update must have arrived; with None, all are waited for
    deadline: float | None = None
    download_seconds: float = 0.0  # time to fetch the model, before training
    # spread of the time that training takes: the standard deviation of its factor's logarithm, which is normal
    jitter: float = 0.0
    # the longest time between decisions while work goes on; None where rounds end with their work
    period: float | None = None
    decide: Collection[str] = ()  # the events after which services decide before, where work goes on: "free", "model"

    @property
    def upload(self) -> Microseconds:
        return to_micro(self.upload_seconds)

    @property
    def download(self) -> Microseconds:
        return to_micro(self.download_seconds)

    @property
    def patience(self) -> Microseconds:
        return min([NEVER, *(to_micro(seconds) for seconds in (self.slot, self.deadline) if seconds is not None)])


@dataclass(slots=True)
class Job:
    """One awarded client at work for one service. ``start`` and ``end`` are set as the simulation plays it."""

    service: str  # name
    client: int  # index
    core: int  # index of the client's core, 0 to K - 1
    price: Micro  # what the service pays for the update, micro-units
    samples: int  # D, the images that the client reports, or what it promises of them; it trains on those that it holds
    compute: Microseconds  # how long training takes
    upload: Microseconds  # how long sending the update takes
    limit: Microseconds  # when the job is cut off because the platform stops waiting or the client leaves
    outcome: Outcome  # ``served`` when the update arrives in time, else ``dropped``; certain from the award on
    start: Microseconds | None = None
    end: Microseconds | None = None
    promised: int = MICRO  # the part of the work that the client promised, in millionths; see ``des.response``
    done: int = MICRO  # the part that it does
    cost: Micro | None = None  # what that costs it, micro-units; None where clients do all of the work


class Journal:
    """Records the events of one round, each at the simulated time at which it happens."""

    __slots__ = ("_clock", "_round", "events")

    def __init__(self, clock: Clock, round_: int) -> None:
        self._clock = clock
        self._round = round_
        self.events: list[MarketEvent] = []  # what has been recorded so far, in order

    @property
    def now(self) -> Microseconds:
        return self._clock.now

    def record(
        self,
        kind: Kind,
        service: str | None = None,
        client: int | None = None,
        core: int | None = None,
        amount: Micro | float | None = None,
    ) -> None:
        """Record an event that happens now. See ``MarketEvent`` for what ``amount`` is."""
        # MarketEvent(...) calls a Python function that does just this, and nothing in a market is called more often.
        event = (self._round, self._clock.now, kind, service, client, core, amount)
        self.events.append(tuple.__new__(MarketEvent, event))

    def record_jobs(self, kind: Kind, jobs: Iterable[Job]) -> None:
        """Record that the same happens to jobs now."""
        new, round_, now = tuple.__new__, self._round, self._clock.now
        self.events += [new(MarketEvent, (round_, now, kind, job.service, job.client, job.core, None)) for job in jobs]


class Shift:
    """The jobs of a round at work on the market's clock, each on the core of its client that it was awarded (eq. 2).

    All begin at once. Jobs that are trained, or have sent their updates, at the same instant share a SimPy event.
    """

    def __init__(self, clock: Clock, journal: Journal) -> None:
        self._clock, self._journal = clock, journal
        self._left: Counter[str] = Counter()  # the jobs of each service that are not done
        self._idle: dict[str, simpy.Event] = {}

    def begin(self, services: Iterable[Sequence[Job]]) -> list[simpy.Event]:
        """Let the jobs of services begin, at least one of each; return the events at which the last ones are done."""
        begun = [job for jobs in services for job in jobs]
        self._left = Counter([job.service for job in begun])
        self._idle = {service: self._clock.event() for service in self._left}
        self._journal.record_jobs(Kind.TRAIN_START, begun)
        now = self._clock.now
        for job in begun:
            job.start = now
        self._wait([min(job.compute, job.limit) for job in begun], begun, self._train)
        return list(self._idle.values())

    def _wait(
        self, delays: Sequence[Microseconds], jobs: Sequence[Job], then: Callable[[list[Job], simpy.Event], None]
    ) -> None:
        """Let each job wait so long, and then do something with all that have waited for the same instant."""
        groups: dict[Microseconds, list[Job]] = {}
        now = self._clock.now
        for delay, job in zip(delays, jobs, strict=True):
            if now + delay in groups:
                groups[now + delay].append(job)
            else:
                groups[now + delay] = [job]
                self._clock.timeout(delay).callbacks.append(partial(then, groups[now + delay]))

    def _train(self, jobs: list[Job], _: simpy.Event) -> None:
        """End the training of jobs. Those that are cut off are done, the others upload."""
        trained: list[Job] = []
        for job in jobs:
            if job.compute <= job.limit:
                trained.append(job)
            else:
                # Where sending takes no time, the updates of jobs before this one arrive before it is done.
                self._upload(trained)
                self._finish([job])
                trained = []
        self._upload(trained)

    def _upload(self, jobs: list[Job]) -> None:
        self._journal.record_jobs(Kind.TRAIN_END, jobs)
        self._wait([min(job.upload, job.limit - job.compute) for job in jobs], jobs, self._send)

    def _send(self, jobs: list[Job], _: simpy.Event) -> None:
        self._journal.record_jobs(Kind.UPLOAD, [job for job in jobs if job.outcome is Outcome.SERVED])
        self._finish(jobs)

    def _finish(self, jobs: list[Job]) -> None:
        now = self._clock.now
        for job in jobs:
            job.end = now
            self._left[job.service] -= 1
            if not self._left[job.service]:
                self._idle[job.service].succeed()
