"""A worker process as seen by the process that started it: what it is sent, what it sends, and how it ended.

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
from typing import IO, Any, Self

from flmarket.core.errors import RunError
from flmarket.core.installation import command
from flmarket.core.plugin_errors import is_own

GRACE = 5.0  # seconds that a worker gets to end before it is killed

_LAST_WORDS = 400
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>\S+)$', re.MULTILINE)

Messages = queue.SimpleQueue[tuple["Worker", dict[str, Any] | None]]
"""What workers send. None says that a process is gone."""


class Worker:
    """A process that plays runs, one after another (``scenarios.running.worker``)."""

    def __init__(self) -> None:
        try:
            self._launch()
        except OSError as error:
            raise RunError(f"no worker process can be started: {error.strerror}") from error
        self._listener: threading.Thread | None = None
        self._gone_at: float | None = None
        self._sentence: str | None = None

    def _launch(self) -> None:
        # A file, not a pipe: whatever torch or a policy prints there cannot block it.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command("scenarios.running.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=_ONE_THREAD | os.environ,
            # Ctrl-C is for the parent process; workers are ended from here.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.stop()

    def prepare(self, datasets: Sequence[str]) -> None:
        """Let the process load data sets, and what trains on them, while this one does the same to plan runs."""
        if datasets:
            self.send(json.dumps({"do": "prepare", "plugins": [], "datasets": datasets}))

    def listen(self, messages: Messages) -> None:
        """Put what the process sends into a queue from now on, and None once it has closed its end."""
        self._listener = threading.Thread(target=self._listen, args=[messages], daemon=True)
        self._listener.start()

    def send(self, line: str) -> None:
        """Send an order; see ``worker``."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # it died; the thread that reads its messages reports that
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    @property
    def lost(self) -> bool:
        """Whether the process ended a while ago although its pipe is still open: a policy's own child may hold it."""
        if self._process.poll() is None:
            return False
        self._gone_at = self._gone_at or time.monotonic()
        return time.monotonic() - self._gone_at > GRACE

    def kill(self, sentence: str) -> None:
        """End the process at once; ``obituary`` returns the reason."""
        self._sentence = sentence
        self._process.kill()

    def obituary(self) -> str:
        """Return how the process ended, and its last words."""
        code = self._end()
        if self._sentence is not None:
            return self._sentence
        self._errors.seek(0)
        words = self._errors.read().decode("utf-8", "replace").strip()
        if (where := _overrun(words)) is not None:
            return f"{where} did not return in time (--decision-timeout)"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"its process {how}" + (f"; last words: {words[-_LAST_WORDS:]}" if words else "")

    def ask_to_stop(self) -> None:
        """Ask the process to end."""
        self._process.terminate()

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

    def _end(self) -> int:
        """Wait for the process to end, with force in the end; return its status."""
        try:
            return self._process.wait(GRACE)
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
            return f"{found['file']}:{found['line']}, in {found['function']},"
    return "a policy"
