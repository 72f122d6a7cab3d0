"""Several runs at a time on this machine: ``--jobs N`` keeps N worker processes busy (``scenarios.running.worker``).

A run has its process to itself while it lasts, and no other run shares its memory or its threads. A process that dies
(killed, out of memory, a crash in compiled code) fails the run that it was playing; another one takes its place.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

from fl.errors import InputError, RunError
from fl.installation import command
from scenarios.logs.directory import Fresh
from scenarios.running.observer import Progress, RunObserver
from scenarios.running.runner import Run
from scenarios.running.worker import order

GRACE = 5.0
"""Seconds that a worker gets to end before it is killed."""

_LAST_WORDS = 400
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class WorkerDied(RunError):  # noqa: N818 - it names what happened
    """The process that played a run is gone."""


class _Worker:
    """A worker process, the run that it plays, and a thread that listens to it."""

    def __init__(self, messages: "queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        self.run: Run | None = None
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
            # Ctrl-C is for whoever started us; workers are ended from here.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=[messages], daemon=True)
        self._reader.start()

    def start(self, run: Run, *, workers: int, fresh: Fresh) -> None:
        self.run = run
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # it died; the thread that reads its messages reports that
            self._process.stdin.write(order(run, workers=workers, fresh=fresh) + "\n")
            self._process.stdin.flush()

    def ending(self) -> str:
        """Return how the process ended."""
        code = self._process.wait()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS))
        words = self._errors.read().decode("utf-8", "replace").strip()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"its process {how}" + (f"; last words: {words}" if words else "")

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def stop(self) -> None:
        """Wait for the process to end, with force in the end."""
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _read(self, messages: "queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            try:
                messages.put((self, json.loads(line)))
            except ValueError:  # cut off when it was killed
                break
        messages.put((self, None))


class Pool:
    """Keeps worker processes busy. As a context manager: none of them outlives it, however it ends."""

    def __init__(self, jobs: int, *, workers: int, fresh: Fresh) -> None:
        """Start nothing yet.

        Args:
            jobs: processes at most.
            workers: training threads of each.
            fresh: start runs over; see ``run_all``.
        """
        self._jobs, self._workers, self._fresh = jobs, workers, fresh
        self._messages: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self._alive: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._alive:
            worker.ask_to_stop()
        for worker in self._alive:
            worker.stop()

    def play(self, runs: Iterable[Run], observer: RunObserver, *, fail_fast: bool = False) -> list[Run]:
        """Play runs; return those that failed.

        Args:
            runs: those to be started first stand first.
            observer: notified of each.
            fail_fast: end with the first run that fails; those under way can be continued.

        Raises:
            InputError: an output directory or a policy's options cannot be used.
        """
        waiting, failed = deque(runs), []
        while waiting or any(worker.run for worker in self._alive):
            self._hand_out(waiting, observer)
            worker, message = self._messages.get()
            run = worker.run
            if message is None:
                self._alive.remove(worker)
                error: RunError | None = WorkerDied(worker.ending()) if run else None
                worker.stop()
            elif run is None:
                continue
            elif message["type"] == "round":
                observer.round_done(run, Progress(message["round"], message["accuracies"], message["leaving"]))
                continue
            else:
                if message["kind"] == "input":
                    raise InputError(message["error"])
                error = RunError(message["error"]) if message["error"] else None
                worker.run = None
            if run is None:
                continue
            if error is None:
                observer.completed(run)
            else:
                observer.failed(run, error)
                failed.append(run)
                if fail_fast:
                    break
        return failed

    def _hand_out(self, waiting: deque[Run], observer: RunObserver) -> None:
        while waiting:
            idle = next((worker for worker in self._alive if worker.run is None), None)
            if idle is None:
                if len(self._alive) >= self._jobs:
                    return
                idle = _Worker(self._messages)
                self._alive.append(idle)
            run = waiting.popleft()
            observer.started(run)
            idle.start(run, workers=self._workers, fresh=self._fresh)
