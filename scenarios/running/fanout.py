"""Spreads independent tasks over processes, and gives or keeps their results as soon as they are there."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from flmarket.core.errors import RunError
from flmarket.core.tracking import counting
from scenarios.running.processes import Processes
from scenarios.running.worker import pickled, unpickled

Item = TypeVar("Item")
Result = TypeVar("Result")


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
            if (found := processes.next()) is None:
                continue
            process, message = found
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
