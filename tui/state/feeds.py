"""The feeds of sessions: a process of this app that plays a run, or a directory in which a run is, or grows."""

import queue
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from des.behaviour import BEHAVIOURS
from fl.data.registry import DATASETS
from flmarket.core.crash import defect
from flmarket.core.errors import InputError
from flmarket.core.plugins import PluginError
from scenarios.file.client_files import require_same_files
from scenarios.loader import ScenarioError
from scenarios.logs.directory import LOG, META, RunDirectory, RunDirectoryError
from scenarios.logs.reading import LogError, LoggedRound, RunReader
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import packed, require_loaded
from scenarios.running.processes import Message, Messages, Process
from scenarios.running.steering import GRACE, Start
from tui.state.run_standing import state_of
from tui.state.watched_run import Session

LIVE, FOLLOWED = 0.05, 0.25  # seconds between two reads of a run of this app (less than a redraw takes), and another's

_ENDS = {None: RunState.COMPLETE, "stopped": RunState.INTERRUPTED}


class Feed(Protocol):
    """A source of a session's rounds."""

    def read(self) -> None:
        """Read rounds into the session until there are no more. Runs in its own thread."""

    def send(self, do: str, **content: Any) -> None:
        """Send a command."""

    def close(self) -> None:
        """Stop reading, and end the process if there is one."""


class LiveRun:
    """One process, the run that it plays, and the session that the run is read into.

    ``read`` runs in its own thread; everything else is called by the screens and does not wait, except ``close``.
    """

    def __init__(
        self,
        session: Session,
        start: Start,
        process: Process | None = None,  # one that has been started already, and imports meanwhile
    ) -> None:
        self.session = session
        self._closing = self._reading = False
        self._messages: Messages = queue.SimpleQueue()
        self._reader: RunReader | None = None
        self._services = 0
        self._process = process or Process()
        self._process.listen(self._messages)
        session.open_with("starting Python")
        self._process.send("watch", **asdict(start), plugins=packed())

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, do: str, **content: Any) -> None:
        """Send a command; see ``scenarios.running.steering.Control``. Does nothing if the process has ended."""
        self._process.send(do, **content)

    def read(self) -> None:
        """Read rounds into the session until the run, or the process, has ended."""
        self._reading = True
        try:
            while not self.session.over:
                message = self._next()
                if self._reader is not None:  # before the message, which may be that the run has ended or paused
                    for text in self._reader.grow(self._services):
                        self.session.add(text)
                self._take(message)
        except (OSError, UnicodeError, RunDirectoryError, LogError, ScenarioError) as error:
            self._fail(f"the run cannot be shown: {error}")
        finally:
            self._process.kill()
            self._process.stop()

    def close(self) -> None:
        """End the process: with a command, which lets it play its round to the end, then by force."""
        self._closing = True
        self.send("quit")
        self._process.quit(0.5 if self.session.directory is None else GRACE + 0.5)  # no directory, no round
        if not self._reading:
            self._process.stop()

    def _next(self) -> Message | None:
        """Return the next message, None if the process is gone, or an empty one after a moment without."""
        try:
            return self._messages.get(timeout=LIVE)[1]
        except queue.Empty:
            return None if self._process.lost else {}

    def _take(self, message: Message | None) -> None:
        """Apply a message to the session; see ``scenarios.running.worker``."""
        match message:
            case None if self._closing:
                self.session.move(RunState.INTERRUPTED)
            case None:
                self._fail(self._process.obituary())
            case {"type": "opening", "text": text}:
                self.session.open_with(text)
            case {"type": "begun", "directory": place, "sweep": sweep}:
                directory = Path(place)
                self.session.identify(directory, RunDirectory(directory).scenario_text(), sweep=sweep)
                assert self.session.scenario is not None  # noqa: S101 - it has been identified
                self._reader, self._services = RunReader(directory), len(self.session.scenario.services)
            case {"type": "state", "paused": paused, "speed": speed}:
                self.session.set_state(paused=paused, speed=speed)
            case {"type": "slow", "text": text}:
                self.session.wait_for(text)
            case {"type": "end", "error": error, "kind": kind}:
                self.session.move(_ENDS.get(kind, RunState.FAILED), error)

    def _fail(self, error: str) -> None:
        where = self.session.directory
        self.session.move(RunState.FAILED, error if where is None else f"{error}\nlog: {where / LOG}")


class DirectoryFeed:
    """Reads a run directory into a session; a run that another process plays, round by round."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        self._path = path
        self._stop = threading.Event()

    def send(self, do: str, **_: object) -> None:
        """Do nothing: a run in a directory cannot be steered."""

    def close(self) -> None:
        """Stop following."""
        self._stop.set()

    def read(self) -> None:
        """Read all rounds, and new ones as they come, until the run has ended."""
        try:
            if self._identify():
                self.session.add_whole(self._path, RunReader(self._path).whole())
                self._conclude()
            else:
                self._follow()
        except PluginError as error:  # names the run itself
            self.session.move(RunState.UNREADABLE, str(error))
        except (OSError, UnicodeError, InputError, ScenarioError, LogError) as error:
            self.session.move(RunState.UNREADABLE, f"{self._path}: cannot be replayed: {error}")
        except Exception as error:  # in a thread, where a failure would go unseen
            self.session.move(RunState.UNREADABLE, defect(error))

    def _identify(self) -> bool:
        """Set what is run; return whether the run is complete, and its files are what was written."""
        whole, labels, meta = False, {}, None
        if (self._path / META).exists():
            run = RunDirectory(self._path)
            meta = run.meta()
            kinds = DATASETS.kind, BEHAVIOURS.kind
            needed = {thing: record for thing, record in meta["plugins"].items() if thing.rpartition(" ")[0] in kinds}
            require_loaded(needed, str(self._path))  # bids depend on them; nothing else is needed to show a run
            labels = meta["labels"]
            if whole := run.state is RunState.COMPLETE:
                run.require_whole(digests=True)
        self.session.identify(self._path, RunDirectory(self._path).scenario_text(), labels=labels)
        if meta is not None and (scenario := self.session.scenario) is not None:
            require_same_files(scenario, meta)  # bids depend on them, as on a plug-in
        return whole

    def _follow(self) -> None:
        scenario = self.session.scenario
        assert scenario is not None  # noqa: S101 - it has been identified
        services = [service.name for service in scenario.services]
        reader = RunReader(self._path)
        while not self._stop.is_set() and self.session.state is not RunState.GONE:
            # In this order: what was written before meta.json is in the tables when they are read.
            state = state_of(self._path)
            if state is RunState.RUNNING:
                self._move(state)  # before rounds are read, of which there may be thousands
            for text in reader.grow(len(services)):
                LoggedRound.read(text).check(services, scenario.clients.count)
                self.session.add(text)
            if state in {RunState.COMPLETE, RunState.FAILED}:
                self._conclude()
                return
            self._move(state)
            # Where files have no locks, an interrupted run may only have paused: keep reading.
            self._stop.wait(FOLLOWED)

    def _move(self, state: RunState) -> None:
        if state is not self.session.state:
            self.session.move(state)

    def _conclude(self) -> None:
        run = RunDirectory(self._path)
        error = run.meta().get("error")
        if run.state is RunState.COMPLETE and len(self.session.history) != run.meta()["rounds"]:
            raise LogError("the run was started over while it was watched; open it again")
        if run.state is RunState.COMPLETE:
            self.session.sweep = run.meta()["sweep"]
            self.session.move(RunState.COMPLETE)
        else:
            self.session.move(RunState.FAILED, f"{error or 'the run failed'}\nlog: {self._path / LOG}")
