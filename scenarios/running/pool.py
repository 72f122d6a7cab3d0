"""Runs in worker processes on this machine: ``--jobs N`` keeps N of them busy (``scenarios.running.worker``).

A run has its process to itself while it lasts, and no other run shares its memory or its threads. A process that dies
(killed, out of memory, a crash in compiled code) fails the run that it was playing; another one takes its place. So
does one whose policy does not return in time.
"""

import queue
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from flmarket.core.errors import InputError, RunError
from scenarios.file.schema import Scenario
from scenarios.logs.directory import LOG
from scenarios.running.observer import Progress, RunObserver
from scenarios.running.options import RunOptions
from scenarios.running.process import Messages, Worker
from scenarios.running.runner import Run
from scenarios.running.worker import order, trial

_TICK = 0.2  # seconds between two looks at whether the workers are still there


class WorkerDied(RunError):  # noqa: N818 - it names what happened
    """The process that played a run is gone."""


class Pool:
    """Keeps worker processes busy. As a context manager: none of them outlives it, however it ends."""

    def __init__(
        self,
        jobs: int,  # processes at most
        options: RunOptions,
        first: Worker | None = None,  # a process that has been started already
    ) -> None:
        self._jobs, self._options = jobs, options
        self._messages: Messages = queue.SimpleQueue()
        self._alive: list[Worker] = []
        self._playing: dict[Worker, Run] = {}
        self._looked = 0.0
        if first is not None:
            self._add(first)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._alive:
            worker.ask_to_stop()
        for worker in self._alive:
            worker.stop()

    def require_playable(self, scenarios: Iterable[Scenario], observer: RunObserver) -> None:
        """Try in a worker what ``scenarios.playable.require_playable`` tries; it may end that process alone."""
        for scenario in scenarios:
            worker = self._idle()
            worker.send(trial(scenario, self._options.decision_timeout))
            while True:
                _, message = self._next(observer)
                if message is None:
                    raise InputError(f"scenario {scenario.name!r} cannot be played: {self._bury(worker)}")
                if message["type"] == "end":
                    break
            if message["error"] is not None:
                raise InputError(message["error"])

    def play(
        self,
        runs: Iterable[Run],  # those to be started first stand first
        observer: RunObserver,  # notified of each
    ) -> list[Run]:
        waiting, failed = deque(runs), []
        while waiting or self._playing:
            while waiting and (len(self._playing) < len(self._alive) or len(self._alive) < self._jobs):
                self._start(waiting.popleft(), observer)
            worker, message = self._next(observer)
            run = self._playing.get(worker)
            if message is None:
                why = self._bury(worker)
                error: RunError | None = WorkerDied(why) if run else None
                if run:
                    _log_failure(run, why)
            elif run is None:
                continue
            elif message["type"] == "round":
                observer.round_done(run, Progress(message["round"], message["accuracies"]))
                continue
            else:
                if message["kind"] == "input":
                    raise InputError(message["error"])
                error = None if message["error"] is None else RunError(message["error"])
            if run is None:
                continue
            self._playing.pop(worker, None)
            if error is None:
                observer.completed(run)
            else:
                if message is not None:  # who knows what the run left behind in there
                    worker.kill("a run failed in it")
                    self._bury(worker)
                observer.failed(run, error)
                failed.append(run)
                if self._options.fail_fast:  # those under way can be resumed
                    break
        return failed

    def _start(self, run: Run, observer: RunObserver) -> None:
        worker = self._idle()
        asked = order(
            run,
            workers=self._options.threads,
            fresh=self._options.again,
            decision_timeout=self._options.decision_timeout,
        )
        observer.started(run)
        self._playing[worker] = run
        worker.send(asked)

    def _idle(self) -> Worker:
        return next((worker for worker in self._alive if worker not in self._playing), None) or self._add(Worker())

    def _add(self, worker: Worker) -> Worker:
        worker.listen(self._messages)
        self._alive.append(worker)
        return worker

    def _bury(self, worker: Worker) -> str:
        """Forget a worker whose process is gone, or about to go; return how it ended."""
        self._alive.remove(worker)
        why = worker.obituary()
        worker.stop()
        return why

    def _next(self, observer: RunObserver) -> tuple[Worker, dict[str, Any] | None]:
        """Return the next message that is not about slow code, which the observer gets."""
        while True:
            # Not only while there is no message: other workers may send thousands in a second.
            if (now := time.monotonic()) - self._looked >= _TICK:
                self._looked = now
                for worker in self._alive:
                    if worker.lost:
                        return worker, None
            with suppress(queue.Empty):
                worker, message = self._messages.get(timeout=_TICK)
                if worker not in self._alive:  # one that was given up has closed its pipe at last
                    continue
                if message is None or message["type"] != "slow":
                    return worker, message
                ending = "--decision-timeout SECONDS ends such a run"
                observer.slow(self._playing.get(worker), f"{message['text']}; {ending}")


def _log_failure(run: Run, why: str) -> None:
    """Write into the run's log what its process could not write any more."""
    now = datetime.now()
    line = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} ERROR failed: {why}\n"
    with suppress(OSError), (run.directory.path / LOG).open("a", encoding="utf-8") as log:
        log.write(line)
