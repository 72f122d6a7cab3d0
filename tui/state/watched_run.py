"""A run as the screens see it, whether a process of this app plays it or a directory holds it."""

import threading
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from des.behaviour import BehaviourError
from des.cost import CostError
from flmarket.core.plugin_errors import plugin_code
from scenarios.file.checks import played
from scenarios.file.differences import ScenarioValues
from scenarios.file.interventions import market_of
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, parse, settled
from scenarios.logs.directory import RunDirectory, RunDirectoryError
from scenarios.logs.reading import LogError, LoggedRound, Spans, StoredRounds
from scenarios.logs.run_state import RunState
from scenarios.logs.unlike_runs import played_by
from scenarios.world import World
from tui.state.bid_verdicts import RoundBook
from tui.state.history import History
from tui.state.pace import Pace
from tui.state.run_standing import run_label

OVER = frozenset({RunState.FAILED, RunState.UNREADABLE, RunState.GONE, RunState.INTERRUPTED, RunState.COMPLETE})


class SessionChanged(Message):
    """A run has new rounds or another state. Sent once until ``Session.seen`` is called, however much happens."""

    def __init__(self, session: "Session") -> None:
        super().__init__()
        self.session = session


class Session:
    """One run: its scenario, its rounds so far, and its state.

    A feed fills it from another thread. Screens that watch it get one ``SessionChanged`` for all that is new.

    Attributes:
        policy, seed, hash8: the run's labels, as in its directory.
    """

    def __init__(self, label: str, *, hurry: int = 0, state: RunState = RunState.STARTING) -> None:
        self.history = History()  # the rounds so far
        self.state = state
        self.speed: float | None = None  # rounds per second at most; None for full speed
        self.scenario: Scenario | None = None  # None until it is known
        self.values: ScenarioValues | None = None  # what names it among others; None until it is known
        self.world: World | None = None  # None until it is known
        self.directory: Path | None = None  # the run's directory; None until it is known
        self.policy, self.seed, self.hash8 = "", 0, ""
        self.market = ""  # the text of the scenario without policies and interventions; empty until it is known
        self.pace = Pace()  # how fast the run is
        # the values of its sweep point, by key; of another process's run they are known when it is complete
        self.sweep: Mapping[str, Any] = {}
        self.version = ""  # that of flmarket which played the run; empty until the run is complete
        # the arithmetic in which each service's models were trained; known when the run is complete
        self.kernels: Mapping[str, str] = {}
        self.error: str | None = None  # why the run failed; None if it did not
        self.slow: str | None = None  # which policy the round waits for, if it takes long; None otherwise
        self.opening: list[str] = []  # what the run's process has done, and does, before the run is known
        self.hurry = hurry  # rounds that a fork shares with its original; it plays those after the checkpoint
        self.origin: Session | None = None  # the run that it was forked from
        self._label = label
        self._book: RoundBook | None = None
        self._watchers: dict[MessagePump, bool] = {}  # whether each has a message that it has not seen
        self._lock = threading.Lock()

    def watch(self, watcher: MessagePump) -> None:
        """Notify a screen of changes from now on."""
        with self._lock:
            self._watchers[watcher] = False

    def unwatch(self, watcher: MessagePump) -> None:
        """Stop notifying a screen."""
        with self._lock:
            self._watchers.pop(watcher, None)

    def seen(self, watcher: MessagePump) -> None:
        """Record that a screen is about to show the present state; the next change notifies it again."""
        with self._lock:
            if watcher in self._watchers:
                self._watchers[watcher] = False

    def changed(self) -> None:
        """Notify all watchers that have seen the last change. From any thread."""
        with self._lock:
            waiting = [watcher for watcher, notified in self._watchers.items() if not notified]
            self._watchers.update(dict.fromkeys(waiting, True))
        for watcher in waiting:
            watcher.post_message(SessionChanged(self))

    @property
    def label(self) -> str:
        if self.scenario is None:
            return self._label
        fork = f" · fork from round {self.hurry + 1}" if self.hurry else ""
        return run_label(self.scenario.name, self.policy, self.seed) + fork

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def catching_up(self) -> bool:
        """Whether a fork still plays the rounds that it shares with its original."""
        return not self.over and len(self.history) < self.hurry

    def identify(
        self,
        directory: Path,  # the run's
        scenario: str,  # its text
        *,
        sweep: Mapping[str, Any] = {},  # the values of its sweep point, where they are known
        labels: Mapping[str, int] | None = None,  # of the data sets, where the run has recorded them; see ``World``
    ) -> None:
        seed = directory.name.removeprefix("seed-")
        if not (seed.isascii() and seed.isdigit()):
            raise LogError("not a run directory; its name must be seed-NNNN")
        parsed = parse(scenario, str(directory / "scenario.toml"), catalogue=played())  # shown here, played elsewhere
        self.directory, self.policy, self.seed = directory, directory.parent.name, int(seed)
        self.hash8 = directory.parent.parent.name.rpartition("-")[2]
        self.world = World(parsed, self.seed, labels)
        self.sweep = sweep
        self.market = market_of(tomllib.loads(dumps(settled(parsed))))
        self.values = ScenarioValues.of(parsed, self.policy)
        self.scenario = parsed
        self.changed()

    def add(self, text: Mapping[str, str]) -> None:
        if self.directory is not None:
            self.history.stored = self.history.stored or StoredRounds(self.directory)
            self.history.stored.add_text(text)
        self.history.append(LoggedRound.read(text))
        if not self.over:  # rounds that were written before may be read after
            self.pace.add()
        if len(self.history) == self.hurry:
            self.pace.stop()  # what it shares with its original comes faster
        self.slow = None
        self.changed()

    def add_whole(
        self,
        directory: Path,  # the run's
        rounds: Iterable[tuple[Mapping[str, str], Spans]],  # of each, its lines in small tables, and its place in all
    ) -> None:
        """Add all rounds of a complete run whose files are what was written; most of each is read when it is shown."""
        self.history.stored = StoredRounds(directory)
        for lines, spans in rounds:
            self.history.stored.add(spans)
            self.history.append(LoggedRound.glance(lines), hold=False)
        self.changed()

    def book(self, logged: LoggedRound) -> RoundBook:
        """Return a round's order book."""
        assert self.world is not None  # noqa: S101 - known before the first round
        # Screens look at one round again and again, while the user moves around in it.
        if self._book is None or self._book.logged is not logged:
            try:
                with plugin_code("the behaviour of clients", BehaviourError):
                    carried = self.history.at_work(logged.number - 1)
                    self._book = RoundBook(logged, self.world, self.history.__getitem__, carried)
            except (BehaviourError, CostError) as error:
                raise LogError(f"round {logged.number}: {error}") from error
        return self._book

    def spoil(self, error: LogError) -> None:
        """Drop the rounds of a run, one of which cannot be shown after all."""
        self.history = History()
        self.move(RunState.UNREADABLE, f"{self.directory}: cannot be replayed: {error}")
        self.miss()

    def open_with(self, step: str) -> None:
        """Record what the run's process does now, before it can play."""
        self.opening.append(step)
        self.changed()

    def wait_for(self, slow: str) -> None:
        """Record which policy the round waits for."""
        self.slow = slow
        self.changed()

    def move(self, state: RunState, error: str | None = None) -> None:
        """Set the state, and the error if there is one."""
        if state is not self.state:
            self.pace.stop()
        self.state = state
        if error is not None:
            self.error = error
        if state is RunState.COMPLETE and self.directory is not None:
            with suppress(RunDirectoryError):  # it was removed meanwhile: there is nothing to compare it by
                meta = RunDirectory(self.directory).meta()
                self.version, self.kernels = played_by(meta), dict(meta["kernel"])
        self.changed()

    def miss(self) -> None:
        """Find out whether the run's directory has been removed. From any thread."""
        if self.directory is not None and self.state is not RunState.GONE and not self.directory.is_dir():
            self.move(RunState.GONE, f"{self.directory}: has been removed")

    def set_state(self, *, paused: bool, speed: float | None) -> None:
        self.speed = speed
        self.move(RunState.PAUSED if paused else RunState.RUNNING)
