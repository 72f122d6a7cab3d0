"""A run that a process of this app plays: its files are followed, and the process is steered and always ended."""

import queue
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scenarios.loader import ScenarioError
from scenarios.logs.directory import LOG, RunDirectory, RunDirectoryError
from scenarios.logs.reading import LogError, RunReader
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import packed
from scenarios.running.processes import Message, Messages, Process
from scenarios.running.steering import GRACE, Start
from tui.state.watched_run import Session

INTERVAL = 0.05  # seconds between two reads of the files: less than between two redraws

_ENDS = {None: RunState.COMPLETE, "stopped": RunState.INTERRUPTED}


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
            return self._messages.get(timeout=INTERVAL)[1]
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
