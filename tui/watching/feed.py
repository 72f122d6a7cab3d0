"""Talks to a runner process: starts it, reads what it says into a session, passes commands on, and ends it for sure."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fl.installation import command
from scenarios.loader import ScenarioError
from scenarios.logs.directory import LOG
from scenarios.logs.reading import LogError
from scenarios.plugins import packed
from scenarios.running.protocol import VERSION, ProtocolError, Start, parse
from tui.watching.session import Phase, Session

RUNNER = tuple(command("scenarios.running.serve"))
LONGEST_LINE = 256 * 1024 * 1024
"""Characters; a round of 1,000 services x 10,000 clients stays below."""

_ENDS = {"complete": Phase.COMPLETE, "failed": Phase.FAILED, "stopped": Phase.STOPPED}
_TAIL = 2_000


class RunnerFeed:
    """One runner process and the session it fills.

    ``read`` runs in a thread of its own; everything else is called by the screens and never waits, but for ``close``.
    """

    def __init__(self, session: Session, start: Start, command: Sequence[str] = RUNNER) -> None:
        self.session = session
        self._closing = self._reading = False
        # Until the run has a log of its own, this is where its complaints go.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        # A group of its own: an interrupt from the keyboard is for the screen, which then says quit.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._write(replace(start, plugins=packed()).line())

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, do: str, **content: Any) -> None:
        """Pass a command on; one to a process that is gone is for nobody."""
        self._write(json.dumps({"do": do, **content}))

    def read(self) -> None:
        """Take in all that the runner says, until its last word or its death."""
        self._reading = True
        out = self._process.stdout
        assert out is not None  # noqa: S101 - it is a pipe
        with self._complaints, out:
            try:
                while (line := out.readline(LONGEST_LINE)) and not self._take(parse(line)):
                    pass
            except (ProtocolError, LogError, ScenarioError) as error:
                # Half a line is what death leaves behind; ``_died`` says how it came.
                if line.endswith("\n"):
                    self._fail(f"the runner said something that was not understood: {error}")
                self._process.kill()
            self._process.wait()
            if not self.session.over:
                self._died(self._process.returncode)

    def close(self, patience: float = 0.5) -> None:
        """End the process: by asking, by telling, by force."""
        self._closing = True
        self.send("quit")
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError):
            self._process.stdin.close()
        for force in (None, signal.SIGTERM, signal.SIGKILL):
            if force is not None:
                self._process.send_signal(force)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                break
        if not self._reading and self._process.stdout is not None:
            self._process.stdout.close()
            self._complaints.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError, ValueError):  # it is gone; ``read`` says so
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _take(self, found: Mapping[str, Any]) -> bool:
        """Take in a message; return whether it was the last."""
        match found:
            case {"say": "hello", "version": version} if version != VERSION:
                raise ProtocolError(f"it speaks protocol {version}, we {VERSION}")
            case {"say": "hello", "directory": str(directory), "scenario": str(scenario)}:
                self.session.identify(
                    Path(directory),
                    scenario,
                    policy=str(found.get("policy")),
                    seed=int(found.get("seed", 0)),
                    hash8=str(found.get("hash8")),
                )
            case {"say": "round", "text": dict(text)}:
                self.session.add(text)
            case {"say": "state"}:
                self.session.set_state(found)
            case {"say": "end", "status": str(status)} if status in _ENDS:
                error = found.get("error")
                self.session.move(_ENDS[status], None if error is None else str(error))
                return True
            case _:
                raise ProtocolError(f"not a message of protocol {VERSION}: {str(found)[:200]}")
        return False

    def _died(self, status: int) -> None:
        if self._closing:
            self.session.move(Phase.STOPPED)
            return
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        self._fail(f"the runner {how} before its run was over")

    def _fail(self, error: str) -> None:
        where = self.session.directory
        if where is not None:
            error += f"\nlog: {where / LOG}"
        elif tail := self._last_words():
            error += f"\n{tail}"
        self.session.move(Phase.FAILED, error)

    def _last_words(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read().decode("utf-8", "replace")[-_TAIL:].strip()
