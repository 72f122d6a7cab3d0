"""Runs in worker processes on this machine: ``--jobs N`` keeps N of them busy (``scenarios.running.worker``).

A run has its process to itself while it lasts, and no other run shares its memory or its threads. A process that dies
(killed, out of memory, a crash in compiled code) fails the run that it was playing; another one takes its place. So
does one whose policy does not return in time. How far runs are is read from their files.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from flmarket.core.errors import InputError, RunError
from scenarios.file.schema import Scenario
from scenarios.logs.directory import LOG
from scenarios.logs.reading import LogError, last_services
from scenarios.running.observer import RunObserver
from scenarios.running.options import RunOptions
from scenarios.running.processes import Process, Processes
from scenarios.running.runner import Run
from scenarios.running.worker import order, trial

_ENDING = "; a decision timeout would end such a run"


class WorkerDied(RunError):  # noqa: N818 - it names what happened
    """The process that played a run is gone."""


@dataclass(slots=True)
class _Playing:
    run: Run
    begun: bool = False  # whether its files are this run's, and not those of one that will be started over
    round: int = 0  # the last one that the observer knows of

    def look(self, observer: RunObserver) -> None:
        with suppress(OSError, LogError):  # it was removed; the run itself says so
            number, services = last_services(self.run.directory.path) if self.begun else (0, ())
            if number > self.round:
                self.round = number
                observer.progressed(self.run, number, services)


class Pool:
    """Plays runs in worker processes. As a context manager: none of them outlives it, however it ends."""

    def __init__(
        self,
        jobs: int,  # processes at most
        options: RunOptions,
        first: Process | None = None,  # a process that has been started already
    ) -> None:
        self._options = options
        self._processes = Processes[_Playing | None](jobs)
        if first is not None:
            self._processes.add(first)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.__exit__()

    def require_playable(self, scenarios: Iterable[Scenario], observer: RunObserver) -> None:
        """Try in a worker what ``scenarios.playable.require_playable`` tries; it may end that process alone."""
        for scenario in scenarios:
            process = self._processes.start(None, "try", **trial(scenario, self._options.decision_timeout))
            while process in self._processes.busy:
                match self._processes.next():
                    case (_, None):
                        problem = f"scenario {scenario.name!r} cannot be played: {process.obituary()}"
                        raise WorkerDied(problem) if process.killed else InputError(problem)
                    case (_, {"type": "slow", "text": text}):
                        observer.slow(None, text + _ENDING)
                    case (_, {"type": "end", "error": error}):
                        del self._processes.busy[process]
                        if error is not None:
                            raise InputError(error)

    def play(
        self,
        runs: Iterable[Run],  # those to be started first stand first
        observer: RunObserver,  # notified of each
    ) -> list[Run]:
        """Return the runs that failed."""
        waiting, failed = deque(runs), list[Run]()
        busy = self._processes.busy
        while waiting or busy:
            while waiting and self._processes.free:
                self._start(waiting.popleft(), observer)
            if (found := self._processes.next()) is None:
                for playing in busy.values():
                    if playing:
                        playing.look(observer)
                continue
            process, message = found
            if (playing := busy.get(process)) is None:
                continue
            run, error = playing.run, None
            match message:
                case {"type": "begun"}:
                    playing.begun = True
                    continue
                case {"type": "slow", "text": text}:
                    observer.slow(run, text + _ENDING)
                    continue
                case {"kind": "input", "error": reason}:
                    raise InputError(reason)
                case {"error": str(reason)}:
                    error = RunError(reason)
                case None:
                    error = WorkerDied(process.obituary())
                    _log_failure(run, error)
            if error is None:
                del busy[process]
                observer.completed(run)
            else:
                self._processes.bury(process)  # who knows what the run left behind in there
                observer.failed(run, error)
                failed.append(run)
                if self._options.fail_fast:  # those under way can be resumed
                    break
        return failed

    def _start(self, run: Run, observer: RunObserver) -> None:
        observer.started(run)
        options = self._options
        asked = order(run, workers=options.threads, fresh=options.again, decision_timeout=options.decision_timeout)
        self._processes.start(_Playing(run), "play", **asked)


def _log_failure(run: Run, why: WorkerDied) -> None:
    """Write into the run's log what its process could not write any more."""
    now = datetime.now()
    line = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} ERROR failed: {why}\n"
    with suppress(OSError), (run.directory.path / LOG).open("a", encoding="utf-8") as log:
        log.write(line)
