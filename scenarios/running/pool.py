"""Runs, and other tasks, in worker processes on this machine: ``--jobs N`` keeps N of them busy.

A run has its process to itself while it lasts, and no other run shares its memory or its threads. A process that dies
(killed, out of memory, a crash in compiled code) fails the run that it was playing; another one takes its place. So
does one whose policy does not return in time. How far runs are is read from their files.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from des.log_records import ServiceReport
from flmarket.core.errors import InputError, RunError
from flmarket.core.tracking import counting
from scenarios.file.schema import Scenario
from scenarios.logs.directory import LOG
from scenarios.logs.reading import LogError, RunReader
from scenarios.running.batch_run import Callback, Outcome, Run
from scenarios.running.processes import Process, Processes
from scenarios.running.run_options import RunOptions
from scenarios.running.worker import pickled, play_message, try_message, unpickled

Item = TypeVar("Item")
Result = TypeVar("Result")

_ENDING = "; a decision timeout would end such a run"


class WorkerDied(RunError):  # noqa: N818 - it names what happened
    """The process that played a run is gone."""


class _Newest(NamedTuple):
    round: int
    services: tuple[ServiceReport, ...]
    last: bool


@dataclass(slots=True)
class _Playing:
    run: Run
    round: int | None = None  # the last that was told; None while its files may be of one that is started over

    def look(self, callback: Callback) -> None:
        if self.round is None:
            return
        with suppress(OSError, LogError):  # it was removed; the run itself says so
            number, services = RunReader(self.run.directory.path).last()
            if number > self.round:
                self.round = number
                last = number == self.run.scenario.rounds or all(service.status.gone for service in services)
                callback.after_round(self.run, _Newest(number, services, last))


class Pool(Processes[_Playing | None]):
    """Plays runs in worker processes. As a context manager: none of them outlives it, however it ends."""

    def __init__(
        self,
        jobs: int,  # processes at most
        options: RunOptions,
        first: Process | None = None,  # a process that has been started already
    ) -> None:
        super().__init__(jobs)
        self._options = options
        if first is not None:
            self.add(first)

    def require_playable(self, scenarios: Iterable[Scenario], callback: Callback) -> None:
        """Try in a worker what ``scenarios.playable.require_playable`` tries; it may end that process alone."""
        for scenario in scenarios:
            process = self.start(None, "try", **try_message(scenario, self._options.decision_timeout))
            while process in self.busy:
                match self.next():
                    case None:
                        callback.wait()
                    case (_, None):
                        problem = f"scenario {scenario.name!r} cannot be played: {process.obituary()}"
                        raise WorkerDied(problem) if process.killed else InputError(problem)
                    case (_, {"type": "slow", "text": text}):
                        callback.slow(None, text + _ENDING)
                    case (_, {"type": "end", "error": error}):
                        del self.busy[process]
                        if error is not None:
                            raise InputError(error)

    def play(
        self,
        runs: Iterable[Run],  # those to be started first stand first
        callback: Callback,  # told of each
    ) -> Generator[Outcome, None, None]:
        """Yield each run that is over, and what it failed with."""
        waiting = deque(runs)
        while waiting or self.busy:
            while waiting and self.free:
                self._start(waiting.popleft())
            if (heard := self.next()) is None:
                callback.wait()
                for playing in self.busy.values():
                    if playing:
                        playing.look(callback)
                continue
            process, message = heard
            if (playing := self.busy.get(process)) is None:
                continue
            run, error = playing.run, None
            match message:
                case {"type": "begun", "done": done}:
                    playing.round = done
                    callback.begin(run, done)
                    continue
                case {"type": "slow", "text": text}:
                    callback.slow(run, text + _ENDING)
                    continue
                case {"kind": "input", "error": reason}:
                    raise InputError(reason)
                case {"error": str(reason)}:
                    error = RunError(reason)
                case None:
                    error = WorkerDied(process.obituary())
                    _log_failure(run, error)
            if error is None:
                del self.busy[process]
            else:
                self.bury(process)  # who knows what the run left behind in there
            callback.end(run, error)
            yield run, error

    def _start(self, run: Run) -> None:
        options = self._options
        asked = play_message(
            run, workers=options.threads, fresh=options.again, decision_timeout=options.decision_timeout
        )
        self.start(_Playing(run), "play", **asked)


def _log_failure(run: Run, why: WorkerDied) -> None:
    """Write into the run's log what its process could not write any more."""
    now = datetime.now()
    line = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} ERROR failed: {why}\n"
    with suppress(OSError), (run.directory.path / LOG).open("a", encoding="utf-8") as log:
        log.write(line)


def as_they_end(
    task: Callable[[Item], Result],  # a function of a module, or a ``partial`` of one: it is pickled
    items: Sequence[Item],  # what it is called with
    jobs: int,  # how many processes; for one job without plug-ins, which could end their process, this one is enough
    packages: Sequence[Mapping[str, str]],  # plug-in files to load first: ``scenarios.plugin_files.packed``
    ended: str,  # the message of the error if a process ends
) -> Generator[tuple[int, Result], None, None]:
    """Yield the place of each item and what a task returns for it, as soon as it does: nothing waits for a slower one.

    No process outlives the one that calls this, or the iterator: what is under way when that is closed, or when Ctrl-C
    or an error ends it, is ended at once. So an item should be the least work whose result is worth keeping.
    """
    if jobs == 1 and not packages:
        yield from enumerate(map(task, items))
        return
    waiting = deque(enumerate(items))
    with Processes[int](jobs, quiet=False) as processes:
        while waiting or processes.busy:
            while waiting and processes.free:
                place, item = waiting.popleft()
                processes.start(place, "call", task=pickled((task, item)), plugins=packages)
            if (heard := processes.next()) is None:
                continue
            process, message = heard
            if message is None:
                raise RunError(ended)
            if message["type"] == "end":
                place = processes.busy.pop(process)
                result, error = unpickled(message["result"])
                if error is not None:
                    raise error
                yield place, result


def play_games(
    what: str,  # for the progress that is shown
    games: Sequence[Item],
    play: Callable[[Item], Result],  # as the task of ``as_they_end``
    keep: Callable[[Item, Result], None],  # called with each game when it is over, so that an interruption loses none
    jobs: int,
    packages: Sequence[Mapping[str, str]],
) -> None:
    ended = "a process that played games ended: a plug-in or the system ended it; the same command plays the rest"
    with counting(what, len(games)) as step, closing(as_they_end(play, games, jobs, packages, ended)) as results:
        for done, (place, result) in enumerate(results, start=1):
            keep(games[place], result)
            step(done)
