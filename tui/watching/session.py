"""A run that the screens look at, whether it goes on in a process of ours or lies in a directory."""

import threading
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.reading import LoggedRound
from scenarios.world import World
from tui.watching.history import History


class Phase(StrEnum):
    """Where a run stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    GROWING = "growing"  # another process is writing the directory
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # what is in the directory of a run that did not end
    FAILED = "failed"


OVER = frozenset({Phase.COMPLETE, Phase.STOPPED, Phase.INTERRUPTED, Phase.FAILED})


class SessionChanged(Message):
    """A run has new rounds, or another phase. Sent once until ``Session.seen`` is called, however much happens."""

    def __init__(self, session: "Session") -> None:
        super().__init__()
        self.session = session


class Session:
    """One run: what it is, its rounds so far, and where it stands.

    A feed fills it from its own thread; screens watch it and get one ``SessionChanged`` for however many changes there
    were since they last called ``seen``.

    Attributes:
        history: the rounds so far.
        phase: where the run stands.
        speed: rounds in a second at most, None for as fast as it can.
        scenario, world: what runs; None until it is known.
        directory: of the run; None until it is known.
        policy, seed, hash8: of the run.
        error: why it failed.
        hurry: rounds that a fork plays again before it is where the original was.
    """

    def __init__(self, label: str, *, hurry: int = 0) -> None:
        self.history = History()
        self.phase = Phase.STARTING
        self.speed: float | None = None
        self.scenario: Scenario | None = None
        self.world: World | None = None
        self.directory: Path | None = None
        self.policy, self.seed, self.hash8 = "", 0, ""
        self.error: str | None = None
        self.hurry = hurry
        self._label = label
        self._watchers: dict[MessagePump, bool] = {}  # whether each has been told and has not looked yet
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        """What the run is called in titles and tables."""
        if self.scenario is None:
            return self._label
        fork = f" · fork from round {self.hurry + 1}" if self.hurry else ""
        return f"{self.scenario.name} · {self.policy} · seed {self.seed}{fork}"

    @property
    def over(self) -> bool:
        """Whether no more rounds will come."""
        return self.phase in OVER

    @property
    def catching_up(self) -> bool:
        """Whether a fork still plays the rounds that it shares with the original."""
        return not self.over and len(self.history) < self.hurry

    def watch(self, watcher: MessagePump) -> None:
        """Tell a screen of changes from now on."""
        with self._lock:
            self._watchers[watcher] = False

    def unwatch(self, watcher: MessagePump) -> None:
        """Tell a screen no more."""
        with self._lock:
            self._watchers.pop(watcher, None)

    def seen(self, watcher: MessagePump) -> None:
        """Take note that a screen is about to show how things are; the next change is news to it."""
        with self._lock:
            if watcher in self._watchers:
                self._watchers[watcher] = False

    def changed(self) -> None:
        """Tell all watchers that have not been told yet. From any thread."""
        with self._lock:
            news = [watcher for watcher, told in self._watchers.items() if not told]
            self._watchers.update(dict.fromkeys(news, True))
        for watcher in news:
            watcher.post_message(SessionChanged(self))

    def identify(self, directory: Path, scenario: str, *, policy: str, seed: int, hash8: str) -> None:
        """Take in what runs, and where.

        Raises:
            ScenarioError: the scenario is none.
        """
        found = parse(scenario, str(directory / "scenario.toml"))
        self.world = World(found, seed)
        self.directory, self.policy, self.seed, self.hash8 = directory, policy, seed, hash8
        self.scenario = found
        self.changed()

    def add(self, text: Mapping[str, str]) -> None:
        """Take in a round.

        Raises:
            LogError: it is none, or not the next one.
        """
        self.history.append(LoggedRound.read(text))
        self.changed()

    def move(self, phase: Phase, error: str | None = None) -> None:
        """Take in where the run stands now."""
        self.phase = phase
        if error is not None:
            self.error = error
        self.changed()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take in a ``state`` message of the runner."""
        self.speed = state.get("speed")
        self.move(Phase.PAUSED if state.get("paused") else Phase.RUNNING)
