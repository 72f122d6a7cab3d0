"""A runner process: starts it, reads its messages into a session, sends it commands, and always ends it."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from flmarket.core.installation import command
from scenarios.loader import ScenarioError
from scenarios.logs.directory import LOG
from scenarios.logs.reading import LogError
from scenarios.plugins import packed
from scenarios.running.protocol import GRACE, VERSION, ProtocolError, Start, parse
from tui.state.watched_run import Phase, Session

RUNNER = tuple(command("scenarios.running.serve"))
LONGEST_LINE = 256 * 1024 * 1024  # in characters; a round of 1,000 services and 10,000 clients is shorter

_ENDS = {"complete": Phase.COMPLETE, "failed": Phase.FAILED, "stopped": Phase.STOPPED}
_TAIL = 2_000


class Runner:
    """A process that waits for the line that says what to run; it imports PyTorch meanwhile."""

    def __init__(self, command: Sequence[str] = RUNNER) -> None:
        # Until the run has a log, this is where the process writes errors.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        # In its own group: an interrupt from the keyboard is for the app, which then sends quit.
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def end(self) -> None:
        """End a process that has nothing to run."""
        self.process.kill()
        with self.process, self.errors:
            pass


class RunnerFeed:
    """One runner process and the session it fills.

    ``read`` runs in its own thread; everything else is called by the screens and does not wait, except ``close``.
    """

    def __init__(self, session: Session, start: Start, runner: Runner | None = None) -> None:
        self.session = session
        self._closing = self._reading = False
        runner = runner or Runner()
        self._process, self._errors = runner.process, runner.errors
        session.open_with("starting Python and PyTorch")
        self._write(replace(start, plugins=packed()).line())

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, do: str, **content: Any) -> None:
        """Send a command; does nothing if the process has ended."""
        self._write(json.dumps({"do": do, **content}))

    def read(self) -> None:
        """Read the runner's messages until the last one, or until the process ends."""
        self._reading = True
        out = self._process.stdout
        assert out is not None  # noqa: S101 - it is a pipe
        with self._errors, out:
            try:
                while (line := out.readline(LONGEST_LINE)) and not self._take(parse(line)):
                    pass
            except (ProtocolError, LogError, ScenarioError) as error:
                # A process that is killed leaves half a line; ``_report_death`` gives the reason.
                if line.endswith("\n"):
                    self._fail(f"the runner sent an unknown message: {error}")
                self._process.kill()
            self._process.wait()
            if not self.session.over:
                self._report_death(self._process.returncode)

    def close(self) -> None:
        """End the process: with a command, which lets it play its round to the end, then by force."""
        self._closing = True
        self.send("quit")
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(0.5 if self.session.directory is None else GRACE + 0.5)  # no directory, no round
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not self._reading and self._process.stdout is not None:
            self._process.stdout.close()
            self._errors.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError, ValueError):  # the process has ended; ``read`` reports it
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _take(self, found: Mapping[str, Any]) -> bool:
        """Apply a message to the session; return whether it was the last."""
        match found:
            case {"type": "hello", "version": version} if version != VERSION:
                raise ProtocolError(f"it uses protocol {version}, this app {VERSION}")
            case {"type": "hello", "directory": str(directory), "scenario": str(scenario)}:
                self.session.identify(
                    Path(directory),
                    scenario,
                    policy=str(found.get("policy")),
                    seed=int(found.get("seed", 0)),
                    hash8=str(found.get("hash8")),
                    sweep=found.get("sweep", {}),
                )
            case {"type": "round", "text": dict(text)}:
                self.session.add(text)
            case {"type": "opening", "text": str(text)}:
                self.session.open_with(text)
            case {"type": "slow", "text": str(text)}:
                self.session.wait_for(text)
            case {"type": "state"}:
                self.session.set_state(found)
            case {"type": "end", "status": str(status)} if status in _ENDS:
                error = found.get("error")
                self.session.move(_ENDS[status], None if error is None else str(error))
                return True
            case _:
                raise ProtocolError(f"not a message of protocol {VERSION}: {str(found)[:200]}")
        return False

    def _report_death(self, status: int) -> None:
        if self._closing:
            self.session.move(Phase.STOPPED)
            return
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        self._fail(f"the runner {how} before its run ended")

    def _fail(self, error: str) -> None:
        where = self.session.directory
        if where is not None:
            error += f"\nlog: {where / LOG}"
        elif tail := self._last_words():
            error += f"\n{tail}"
        self.session.move(Phase.FAILED, error)

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-_TAIL:].strip()
