"""The timeline of a round: jobs, the clients that work on them on the market's clock, and the journal of events."""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

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
    slots: int | None = None  # how many of these times the market lasts at most; None: there is no such limit

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
    """One awarded client at work for one service."""

    service: str  # name
    client: int  # index
    core: int  # index of the client's core, 0 to K - 1
    price: Micro  # what the service pays for the update, micro-units
    samples: int  # D, the images that the client reports, or what it promises of them; it trains on those that it holds
    compute: Microseconds  # how long training takes
    upload: Microseconds  # how long sending the update takes
    limit: Microseconds  # when the job is cut off because the platform stops waiting or the client leaves
    outcome: Outcome  # ``served`` when the update arrives in time, else ``dropped``; certain from the award on
    start: Microseconds | None = None  # None until it begins, as is the end
    end: Microseconds | None = None
    promised: int = MICRO  # the part of the work that the client promised, in millionths; see ``des.response``
    done: int = MICRO  # the part that it does
    cost: Micro | None = None  # what that costs it, micro-units; None where clients do all of the work

    def begin(self, now: Microseconds) -> None:
        """Set when it starts and ends: its times are certain."""
        self.start, self.end = now, now + min(self.compute + self.upload, self.limit)


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


Follow = Callable[[], None]


class Shift:
    """Jobs at work on the market's clock, each on the core of its client that it was awarded (eq. 2).

    What happens at the same instant does so in the order in which its causes happened; what has the same cause, in the
    order in which jobs began. Ends of training come first.
    """

    def __init__(self, clock: Clock, jobs: Iterable[Job] = ()) -> None:
        """Go on with jobs that have begun; what was due by now has happened."""
        self._clock, self._begun = clock, 0
        # A heap: the instant, the order within it, and the job whose training, or all of which, ends then, or what
        # follows from that. The order: 0 for training, 1 for what follows from it; the instant of the cause, and the
        # same two things of the cause; the job's number.
        self._due: list[tuple[Microseconds, int, Microseconds, int, Microseconds, int, Job | Follow]] = []
        for job in jobs:
            self.begin(job)
        self._due = sorted(it for it in self._due if it[0] > clock.now)

    def begin(self, job: Job) -> int:
        """Let a job work that has its start and end; return its number, which rises."""
        start, end = job.start or 0, job.end or 0
        self._begun += 1
        if job.compute <= job.limit:
            trained = start + job.compute
            heappush(self._due, (trained, 0, 0, 0, 0, self._begun, job))
            heappush(self._due, (end, 1, trained, 0, 0, self._begun, job))
        else:  # it is cut off before
            heappush(self._due, (end, 0, 0, 0, 0, self._begun, job))
        return self._begun

    def play(
        self,
        journal: Journal,
        end: Callable[[int, Job], Follow | None],  # ends a job, given its number, and returns what follows at once
        until: Microseconds | None = None,  # None: until nobody is at work
        # whether it is over, after all that happens at an instant; it is told who comes then
        over: Callable[[list[int]], bool] = lambda _: False,
        coming: Iterable[tuple[Microseconds, int]] = (),  # clients that come, by time
    ) -> Generator[simpy.Event, Any, None]:
        """Let jobs work up to an instant. Others may begin meanwhile."""
        due, clock, queue, ended = self._due, self._clock, deque(coming), False
        while (due or queue) and not ended:
            time = min([it[0][0] for it in (due, queue) if it])
            if until is not None and time > until:
                break
            if time > clock.now:
                yield clock.timeout(time - clock.now)
            while due and due[0][0] == time:
                _, depth, cause, _, _, number, it = heappop(due)
                if not isinstance(it, Job):
                    it()
                elif not depth and it.compute <= it.limit:
                    journal.record(Kind.TRAIN_END, it.service, it.client, it.core)
                elif follow := end(number, it):
                    heappush(due, (time, 1, time, depth, cause, number, follow))
            came = list[int]()
            while queue and queue[0][0] == time:
                came.append(queue.popleft()[1])
            ended = over(came)
