"""The runs that the app has open: starts them, opens run directories, and ends every process when the app quits.

No more runs play at a time than there are cores: others wait, and begin when one of those that play ends. A paused run
does not count, as it takes no time; a fork begins at once, because the user asks something and watches for the answer.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from flmarket.core.crash import defect
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import usable_cores
from learning.play_round import Stopped
from learning.policy import AS_CONFIGURED
from scenarios.build import Shelf, images_of
from scenarios.file.policy_choice import PolicyChoice, policy_again
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, parse, points, settled, with_policy
from scenarios.logs.directory import RunDirectory, RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.running.batch import run_all
from scenarios.running.batch_run import Callback, Run
from scenarios.running.planning import plan_batch
from scenarios.running.processes import WORKER, Process
from scenarios.running.run_options import RunOptions
from scenarios.running.steering import Start
from tui.state.feeds import DirectoryFeed, Feed, LiveRun
from tui.state.known_runs import find_run
from tui.state.watched_run import Session


class Identity(NamedTuple):
    """The values that a run's directory depends on; the data sets are left out, as on one machine they are the same."""

    out: Path  # the folder of run directories
    name: str  # the scenario's name
    scenario: str  # the text of the run's scenario.toml
    policy: str  # the run's label
    seed: int  # the run's seed


def identity_of(session: Session) -> Identity | None:
    """Return a run's identity; None until it is known."""
    if session.scenario is None or session.directory is None:
        return None
    out = session.directory.parent.parent.parent.resolve()
    return Identity(out, session.scenario.name, dumps(settled(session.scenario)), session.policy, session.seed)


def identity_of_start(start: Start) -> Identity | None:
    """Return the identity of a run that is to be started; None if it cannot be, which its runner then reports."""
    try:
        scenario, label = parse(start.scenario, start.file), AS_CONFIGURED
        if start.policy is not None:
            scenario = with_policy(scenario, start.policy)
        scenario = points(scenario)[start.point].scenario
        if start.policy is not None:
            label = PolicyChoice.parse(start.policy).label_in(scenario)
    except (InputError, IndexError):
        return None
    return Identity(Path(start.out).resolve(), scenario.name, dumps(settled(scenario)), label, start.seed)


class LiveBatch(Callback):
    """A batch that this app plays in a thread, planned and played by the functions of ``flmarket run``."""

    def __init__(
        self,
        scenario: Scenario,  # this and the next two: see ``scenarios.running.planning``
        policies: Sequence[str],
        seeds: Sequence[int],
        options: RunOptions,
    ) -> None:
        self._scenario, self._policies, self._seeds, self._options = scenario, policies, seeds, options
        self._stop = threading.Event()
        self.runs: frozenset[Path] = frozenset()  # their directories; empty until they are planned
        self.left = 0  # how many of them are still to be played
        self.over = False
        self.problem = ""  # why not all runs were played; empty if they were

    def play(self) -> None:
        """Play all runs but those that are complete."""
        shelf = Shelf()
        try:
            runs = plan_batch([self._scenario], self._policies, self._seeds, self._options, shelf)
            self.runs = frozenset(run.directory.path for run in runs)
            with Process() as first:  # else one run at a time would be played in this process, which a policy may end
                run_all(runs, shelf, self, self._options, first=first)
        except Stopped:
            self.problem = "The batch was ended; started again, it continues."
        except (InputError, RunError, OSError) as error:
            self.problem = str(error)
        except Exception as error:  # in a thread, where a failure would go unseen
            self.problem = defect(error)
        finally:
            self.left, self.over = 0, True

    def begin_batch(self, runs: Sequence[Run], complete: Sequence[Run], jobs: int | None) -> None:
        self.left = len(runs)

    def end(self, run: Run, error: RunError | None) -> None:
        self.left -= 1

    def wait(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def stop(self) -> None:
        """End its processes, in a moment; each run can be resumed from its last checkpoint."""
        self._stop.set()


class Runs:
    """The sessions and their feeds."""

    def __init__(
        self,
        # runs a function in a thread, in a group with the given name
        work: Callable[[Callable[[], None], str], object],
        runner: Sequence[str] | None = None,  # the command of a process that plays a run; tests use others
    ) -> None:
        self.sessions: list[Session] = []  # in the order in which they were opened
        self.most = usable_cores()  # how many runs play at a time
        self._feeds: dict[Session, Feed] = {}
        self._starts: dict[Session, tuple[Start, Identity | None]] = {}
        self._waiting: dict[Session, Start] = {}  # in the order in which they begin
        self._held: set[Session] = set()  # those that the user has paused
        self._lock = threading.RLock()
        self._work, self._command = work, runner or WORKER
        self.batch: LiveBatch | None = None  # the newest
        self._ready: Process | None = None  # a process for the run that may be asked for next

    def prepare(self, scenario: Scenario) -> None:
        """Start a process for the run that the user is being asked about, and have it read the run's data meanwhile."""
        if self._ready is None and self._playing() < self.most:
            with suppress(RunError):  # starting the run says so
                self._ready = Process(self._command)
                self._ready.send("prepare", datasets=images_of(scenario))

    def release(self) -> None:
        """End the process that was prepared, if nothing was run."""
        process, self._ready = self._ready, None
        if process is not None:
            with process:
                pass

    def start(self, start: Start, label: str, *, at_once: bool = False) -> Session:
        """Start a run in its own process, or put it on the waiting list.

        A run that is being played is not started again: its session is returned, which reads the run's directory if
        another program plays it. For a fresh start, a run of this app is ended first.
        """
        # Two processes must not write to one directory.
        identity = identity_of_start(start)
        live = self._live(start, identity)
        if live is not None:
            if not start.fresh:
                return live
            self.end(live)
        elif not start.fresh and (other := self._elsewhere(identity)) is not None:
            return other
        session = Session(label, hurry=start.hurry)
        session.speed = start.speed
        self._starts[session] = _what(start), identity
        self.sessions.append(session)
        if start.paused:
            self._held.add(session)
        with self._lock:
            count = len(self._processes()) if start.paused else self._playing()
            if count >= self.most and not at_once:
                self._waiting[session] = start
                session.move(RunState.PAUSED if start.paused else RunState.WAITING)
                return session
            self._begin(session, start)
        self._read_in_thread(session)
        return session

    def play_batch(self, batch: LiveBatch) -> None:
        """Play a batch; raise RunError if one is played already."""
        if self.batch is not None and not self.batch.over:
            raise RunError("A batch is being played; wait for its end, or end it with e on its screen.")
        self.batch = batch
        self._work(batch.play, "batch")

    def open(self, path: Path) -> Session:
        """Open a run directory; return its session if it is already open and shows what is there."""
        place = path.resolve()
        for session in self.sessions[::-1]:  # the newest first: a run that is resumed gets another session
            if session.directory is not None and session.directory.resolve() == place:
                if not _outdated(session):
                    return session
                self.end(session)
        session = Session(str(path), state=RunState.READING)
        self.sessions.append(session)
        with self._lock:
            self._feeds[session] = DirectoryFeed(session, path)
        self._read_in_thread(session)
        return session

    def fork(self, session: Session, scenario: str, round_: int, *, paused: bool) -> Session:
        """Start a fork of a session's run: its seed, a changed scenario, and its own rounds up to ``round_``."""
        assert session.directory is not None  # noqa: S101 - only a run that has rounds is forked
        out = session.directory.parent.parent.parent
        policy = None if session.scenario is None else policy_again(session.policy, session.scenario)
        start = Start(
            scenario, "the fork", str(out), policy, seed=session.seed, fresh=True,
            paused=paused, speed=session.speed, hurry=round_ - 1, origin=str(session.directory),
        )  # fmt: skip
        live = self._live(start, identity_of_start(start))
        forked = live or self.start(start, f"fork of {session.label}", at_once=True)
        forked.origin = session
        return forked

    def steerable(self, session: Session) -> bool:
        """Whether this app plays the run, or will, so that it can be paused."""
        ours = session in self._waiting or isinstance(self._feeds.get(session), LiveRun)
        return ours and not session.over

    def send(self, session: Session, do: str, **content: Any) -> None:
        """Send a command to the process that plays a run; a waiting one begins accordingly."""
        with self._lock:
            if do == "resume":
                self._held.discard(session)
            elif do == "pause" or (do == "step" and session not in self._waiting):
                self._held.add(session)
            start = self._waiting.get(session)
            if start is not None:
                if do in {"pause", "resume"}:
                    self._waiting[session] = replace(start, paused=do == "pause")
                    session.move(RunState.PAUSED if do == "pause" else RunState.WAITING)
            else:
                self._feeds[session].send(do, **content)
            if do != "resume":
                return
            begun = self._next()
        if begun is not None:
            self._read_in_thread(begun)

    def play_at(self, session: Session, speed: float | None) -> None:
        """Set the speed of a run, or that of its replay."""
        session.speed = speed
        if self.steerable(session):
            self.send(session, "speed", rounds=speed)

    def end(self, session: Session) -> None:
        """End a run's process and close its session."""
        with self._lock:
            self.sessions.remove(session)
            self._starts.pop(session, None)
            self._waiting.pop(session, None)
            self._held.discard(session)
            feed = self._feeds.pop(session, None)
        if feed is not None:
            feed.close()

    def miss(self) -> None:
        """Find the runs whose directories have been removed; none of them is played on. From any thread."""
        for session in list(self.sessions):
            session.miss()

    def running(self) -> list[Session]:
        """Return the runs that this app plays, and those that wait."""
        return [session for session in self.sessions if self.steerable(session)]

    @property
    def live(self) -> int:
        """How many runs end with this app: those that it plays, and those that wait."""
        return len(self.running()) + (self.batch.left if self.batch is not None else 0)

    def close(self) -> None:
        """End all processes, all at the same time."""
        self.release()
        if self.batch is not None:
            self.batch.stop()
        with self._lock:
            self._waiting.clear()
            feeds, self._feeds = list(self._feeds.values()), {}
            self.sessions.clear()
        if feeds:
            with ThreadPoolExecutor(len(feeds)) as pool:
                list(pool.map(lambda feed: feed.close(), feeds))

    def _live(self, start: Start, identity: Identity | None) -> Session | None:
        """Return the session of a run that this app plays, or that waits, if there is one."""
        what = _what(start)
        for session, (other, same) in self._starts.items():
            if not session.over and (other == what or (identity is not None and same == identity)):
                return session
        return None

    def _elsewhere(self, identity: Identity | None) -> Session | None:
        """Return the session of a run that another program plays, if one does."""
        if identity is None:
            return None
        for session in self.sessions:
            if session.state is RunState.RUNNING and identity_of(session) == identity:
                return session
        run = find_run(identity.out, identity.scenario, identity.name, identity.policy, identity.seed)
        try:
            played = run is not None and run.state is not RunState.COMPLETE and run.being_played()
        except InputError:  # the runner reports what is wrong with the directory
            return None
        return self.open(run.path) if played and run is not None else None

    def _processes(self) -> list[Session]:
        return [s for s, feed in self._feeds.items() if isinstance(feed, LiveRun) and not s.over]

    def _playing(self) -> int:
        return sum(session not in self._held for session in self._processes())

    def _begin(self, session: Session, start: Start) -> None:
        process, self._ready = self._ready, None
        try:
            live = LiveRun(session, replace(start, speed=session.speed), process or Process(self._command))
            self._feeds[session] = live
        except RunError as error:  # no memory or no process to be had
            session.move(RunState.FAILED, str(error))

    def _next(self) -> Session | None:
        """Start the next run that waits, if there is a core for it, and return its session."""
        with self._lock:
            ready = next((session for session in self._waiting if session not in self._held), None)
            if ready is None or self._playing() >= self.most:
                return None
            start = self._waiting.pop(ready)
            ready.move(RunState.STARTING)
            self._begin(ready, start)
            return ready

    def _read_in_thread(self, session: Session) -> None:
        self._work(lambda: self._read(session), f"run-{id(session)}")

    def _read(self, session: Session) -> None:
        """Read a session to its end; then, in the same thread, the runs that waited for it."""
        reading: Session | None = session
        while reading is not None:
            feed = self._feeds.get(reading)
            try:
                if feed is not None:
                    feed.read()
            except Exception as error:  # a defect of ours must not pass unnoticed, nor keep other runs waiting
                reading.move(RunState.UNREADABLE, f"reading the run failed: {error!r}")
            reading.miss()
            reading = self._next()


def _what(start: Start) -> Start:
    """Return a start without the settings that leave the results unchanged."""
    return replace(start, fresh=False, paused=False, speed=None, hurry=0, origin=None)


def _outdated(session: Session) -> bool:
    """Whether a run that did not end well has been completed since, by another session or process, or is back."""
    if session.directory is None or not session.over or session.state is RunState.COMPLETE:
        return False
    if session.state is RunState.GONE:
        return session.directory.is_dir()
    with suppress(RunDirectoryError):
        return RunDirectory(session.directory).state is RunState.COMPLETE
    return False
