"""The timeline of a round: jobs, the clients that work on them on the market's clock, and the journal of events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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


class Client:
    """A client with a K-core CPU (eq. 2 as a SimPy resource)."""

    def __init__(self, env: simpy.Environment, cores: int) -> None:
        self._env = env
        self._cores = simpy.Resource(env, capacity=cores)

    def work(self, job: Job, journal: Journal, done: Callable[[], None]) -> None:
        """Wait for a core, train, upload, release the core, and then call ``done``.

        SimPy calls the steps as their events happen. A process (a generator) for each job would add two events, its
        start and its end, to the four that a job needs.
        """
        env, record = self._env, journal.record

        def start(_: simpy.Event) -> None:
            job.start = env.now
            record(Kind.TRAIN_START, job.service, job.client, job.core)
            env.timeout(min(job.compute, job.limit)).callbacks.append(trained if job.compute <= job.limit else end)

        def trained(_: simpy.Event) -> None:
            record(Kind.TRAIN_END, job.service, job.client, job.core)
            env.timeout(min(job.upload, job.limit - job.compute)).callbacks.append(end)

        def end(_: simpy.Event) -> None:
            job.end = env.now
            if job.outcome is Outcome.SERVED:
                record(Kind.UPLOAD, job.service, job.client, job.core)
            self._cores.release(core)
            done()

        core = self._cores.request()
        core.callbacks.append(start)


class Workforce:
    """Gives jobs to clients. Only those that have been awarded something have a part in the simulation."""

    def __init__(self, env: simpy.Environment, cores: int) -> None:
        self._env, self._cores = env, cores
        self._clients: dict[int, Client] = {}

    def work(self, jobs: Sequence[Job], journal: Journal) -> simpy.Event:
        """Let clients work; return the event at which the last of them is done."""
        all_done, left = self._env.event(), len(jobs)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                all_done.succeed()

        for job in jobs:
            self._client(job.client).work(job, journal, done)
        return all_done

    def _client(self, index: int) -> Client:
        if index not in self._clients:
            self._clients[index] = Client(self._env, self._cores)
        return self._clients[index]
