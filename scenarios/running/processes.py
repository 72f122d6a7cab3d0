"""Child processes: started, spoken to and ended by this one, and gone when it is gone.

A child reads objects of JSON from its standard input, one on a line, and answers the same way; see
``scenarios.running.worker``.
Light to import: a worker can be started first, and gets ready while this process reads and checks what to play.
"""

import json
import os
import queue
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Generic, Self, TypeVar

from flmarket.core.errors import RunError
from flmarket.core.installation import command
from flmarket.core.plugin_errors import is_own

WORKER = tuple(command("scenarios.running.worker"))
GRACE = 5.0  # seconds that a process gets to end before it is killed
TICK = 0.2  # seconds between two looks at whether processes are still there
NOTE = 256  # bytes before a process's last words, in which it writes what it is about to do

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    # glibc returns a large array to the system when it is freed; the next round would pay for its pages again.
    "MALLOC_MMAP_THRESHOLD_": f"{1 << 25}", "MALLOC_TRIM_THRESHOLD_": f"{1 << 28}",
}  # fmt: skip
"""What a process of ours has in its environment, unless the user has set it."""
_LAST_WORDS = 400
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>\S+)$', re.MULTILINE)

Message = dict[str, Any]
Messages = queue.SimpleQueue[tuple["Process", Message | None]]
"""A message of a process. None says that one is gone."""

Job = TypeVar("Job")


class Process:
    """A process that does what it is asked for, one thing after another."""

    def __init__(
        self,
        command: Sequence[str] = WORKER,
        *,
        quiet: bool = True,  # keep what it writes to standard error, for its obituary; otherwise it goes to this one's
    ) -> None:
        self._errors: IO[bytes] | None = None
        try:
            if quiet:  # a file, not a pipe: whatever torch or a policy prints there cannot block it
                self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed in stop()
                self._errors.seek(NOTE)
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=ENVIRONMENT | os.environ,
                # Ctrl-C is for this process, which ends the other one.
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"no process can be started: {error.strerror}") from error
        self._listener: threading.Thread | None = None
        self._gone_at: float | None = None  # when it was first seen to have ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, do: str, **what: Any) -> None:
        """Ask for something; see ``scenarios.running.worker``."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError, ValueError):  # it died; the thread that reads its messages reports that
            self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self._process.stdin.flush()

    def listen(self, messages: Messages) -> None:
        """Put what the process sends into a queue from now on, and None once it has closed its end."""
        self._listener = threading.Thread(target=self._listen, args=[messages], daemon=True)
        self._listener.start()

    @property
    def lost(self) -> bool:
        """Whether the process ended a while ago although its pipe is still open: a policy's own child may hold it."""
        if self._process.poll() is None:
            return False
        self._gone_at = self._gone_at or time.monotonic()
        return time.monotonic() - self._gone_at > GRACE

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def killed(self) -> bool:
        """Whether a signal has ended the process."""
        return self._end() < 0

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def obituary(self) -> str:
        """Return how the process ended, and its last words."""
        code = self._end()
        note, words = self._read_last_words()
        if (where := _overrun(words)) is not None:
            return f"{where}{note}, did not return within the decision timeout"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"its process {how}{note}" + (f"; last words: {words[-_LAST_WORDS:]}" if words else "")

    def _read_last_words(self) -> tuple[str, str]:
        """Return what the process was about to do, if it noted that, and what it has written to standard error."""
        if self._errors is None:
            return "", ""
        self._errors.seek(0)
        note = self._errors.read(NOTE).decode("utf-8", "replace").strip("\0 ")
        return f" ({note})" if note else "", self._errors.read().decode("utf-8", "replace").strip()

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def quit(self, seconds: float) -> None:
        """Close the process's input, which is how it is told to end, and wait so long before it is killed."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError):
            self._process.stdin.close()
        self._end(seconds)

    def stop(self) -> None:
        """Wait for the process to end, with force in the end, and release what it held."""
        self._end()
        if self._listener is not None:
            self._listener.join(GRACE)
            if self._listener.is_alive():  # somebody else holds the pipe open; closing it would wait for the thread
                return
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _end(self, seconds: float | None = None) -> int:
        """Wait for the process to end, so long before it is killed; return its status."""
        try:
            return self._process.wait(GRACE if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _listen(self, messages: Messages) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            try:
                messages.put((self, json.loads(line)))
            except ValueError:  # cut off when it was killed
                break
        messages.put((self, None))


def _overrun(report: str) -> str | None:
    """Return where a process stood that its ``TimeLimit`` ended, given its last words; None if that was not the end."""
    _, ended, stacks = report.rpartition("Timeout (")
    if not ended:
        return None
    for found in _FRAME.finditer(stacks):  # the most recent call comes first
        if is_own(str(Path(found["file"]).absolute())):
            return f"{found['file']}:{found['line']}, in {found['function']}"
    return "a policy"


class Processes(Generic[Job]):
    """Up to a number of processes, kept busy. As a context manager: none of them outlives it, however it ends."""

    def __init__(self, most: int, *, quiet: bool = True) -> None:
        """Start at most so many, when there is something to do; ``quiet`` as in ``Process``."""
        self.busy: dict[Process, Job] = {}  # what those do that have something to do
        self._most, self._quiet = most, quiet
        self._alive: list[Process] = []
        self._messages: Messages = queue.SimpleQueue()
        self._looked = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._alive:
            process.ask_to_stop()
        for process in self._alive:
            process.stop()

    @property
    def free(self) -> bool:
        return len(self.busy) < self._most

    def add(self, process: Process) -> Process:
        """Add a process that has been started already."""
        process.listen(self._messages)
        self._alive.append(process)
        return process

    def start(self, job: Job, do: str, **what: Any) -> Process:
        """Ask a process that has nothing to do for something."""
        for process in [process for process in self._alive if process not in self.busy and process.ended]:
            self.bury(process)
        idle = (process for process in self._alive if process not in self.busy)
        process = next(idle, None) or self.add(Process(quiet=self._quiet))
        self.busy[process] = job
        process.send(do, **what)
        return process

    def next(self) -> tuple[Process, Message | None] | None:
        """Return what a busy process has sent, or one that is gone, with None; None says that a moment has passed."""
        # Not only while there is no message: other processes may send thousands in a second.
        if (now := time.monotonic()) - self._looked >= TICK:
            self._looked = now
            for process in [process for process in self._alive if process.lost]:
                if process in self.busy:
                    return process, None
                self.bury(process)
            return None
        with suppress(queue.Empty):
            process, message = self._messages.get(timeout=TICK)
            if process in self.busy:
                return process, message
            if process in self._alive and message is None:  # it had nothing to do
                self.bury(process)
        return None

    def bury(self, process: Process) -> None:
        """End a process, if it has not ended, and forget it: another one takes its place."""
        self._alive.remove(process)
        self.busy.pop(process, None)
        process.kill()
        process.stop()
