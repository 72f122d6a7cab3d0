"""The timeline of a round: jobs, the clients that work on them on the market's clock, and the journal of events."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import simpy

from des.log_records import Kind, MarketEvent, Outcome
from des.money import Micro


@dataclass(frozen=True, slots=True)
class Timeline:
    """Durations, in simulated seconds."""

    seconds_per_sample: float  # time to train on one image in one epoch, on a client of speed 1
    upload_seconds: float  # time to send the update
    # length of a slot; with None, each slot lasts until its last job is done (the paper's "long enough")
    slot: float | None = None
    # time after the awards by which an update must have arrived; with None, all are waited for
    deadline: float | None = None

    @property
    def patience(self) -> float:
        return min(x for x in (self.slot, self.deadline, float("inf")) if x is not None)


@dataclass(slots=True)
class Job:
    """One awarded client at work for one service. ``start`` and ``end`` are set as the simulation plays it."""

    service: str  # name
    client: int  # index
    core: int  # index of the client's core, 0 to K - 1
    price: Micro  # what the service pays for the update, micro-units
    samples: int  # D, the images that the client reports; it trains on those that it holds
    compute: float  # how long training takes, seconds
    upload: float  # how long sending the update takes, seconds
    limit: float  # when the job is cut off because the platform stops waiting or the client leaves, seconds
    start: float | None = None
    end: float | None = None
    # ``served`` when the update arrives in time, else ``dropped``; certain from the award on
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        self.outcome = Outcome.SERVED if self.compute + self.upload <= self.limit else Outcome.DROPPED


class Journal:
    """Records the events of one round, each at the simulated time at which it happens."""

    __slots__ = ("_env", "_round", "events")

    def __init__(self, env: simpy.Environment, round_: int) -> None:
        self._env = env
        self._round = round_
        self.events: list[MarketEvent] = []  # what has been recorded so far, in order

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
        event = (self._round, self._env.now, kind, service, client, core, amount)
        self.events.append(tuple.__new__(MarketEvent, event))


class Shift:
    """The jobs of a round at work on the market's clock, each on the core of its client that it was awarded (eq. 2).

    All begin at once. Jobs that are trained, or have sent their updates, at the same instant share a SimPy event.
    """

    def __init__(self, env: simpy.Environment, journal: Journal) -> None:
        self._env, self._journal = env, journal
        self._left: dict[str, int] = {}  # by service, the jobs that are not done
        self._idle: dict[str, simpy.Event] = {}

    def begin(self, services: Iterable[Sequence[Job]]) -> list[simpy.Event]:
        """Let the jobs of services begin, at least one of each; return the events at which the last ones are done."""
        trained: dict[float, list[Job]] = {}
        for jobs in services:
            name = jobs[0].service
            self._left[name], self._idle[name] = len(jobs), self._env.event()
            for job in jobs:
                job.start = self._env.now
                self._journal.record(Kind.TRAIN_START, name, job.client, job.core)
                self._wait(trained, min(job.compute, job.limit), job, self._train)
        return list(self._idle.values())

    def _wait(
        self,
        groups: dict[float, list[Job]],  # the jobs that wait for an instant, by its time
        seconds: float,
        job: Job,
        then: Callable[[list[Job], simpy.Event], None],
    ) -> None:
        instant = self._env.now + seconds
        if instant in groups:
            groups[instant].append(job)
        else:
            groups[instant] = [job]
            self._env.timeout(seconds).callbacks.append(partial(then, groups[instant]))

    def _train(self, jobs: list[Job], _: simpy.Event) -> None:
        """End the training of jobs. Those that are cut off are done, the others upload."""
        sent: dict[float, list[Job]] = {}
        for job in jobs:
            if job.compute <= job.limit:
                self._journal.record(Kind.TRAIN_END, job.service, job.client, job.core)
                self._wait(sent, min(job.upload, job.limit - job.compute), job, self._send)
            elif self._finish(job):
                sent = {}  # updates that take no time: those of later jobs arrive after the service has heard of it

    def _send(self, jobs: list[Job], _: simpy.Event) -> None:
        for job in jobs:
            if job.outcome is Outcome.SERVED:
                self._journal.record(Kind.UPLOAD, job.service, job.client, job.core)
            self._finish(job)

    def _finish(self, job: Job) -> bool:
        """End a job; return whether it was its service's last one."""
        job.end = self._env.now
        self._left[job.service] -= 1
        if self._left[job.service]:
            return False
        self._idle[job.service].succeed()
        return True
