"""Spreads independent tasks over processes, and gives their results in order, or as soon as they are there."""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, current_process, get_context
from typing import TypeVar

from flmarket.core.errors import RunError
from scenarios.plugins import unpack
from scenarios.running.parent import end_with_parent_of_pool

UNGUARDED = (
    "a script that plays in several processes is read again by each of them; "
    'put its calls below `if __name__ == "__main__":`'
)

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(
    task: Callable[[Item], Result],  # a function of a module, or a ``partial`` of one: it is pickled
    items: Sequence[Item],  # what it is called with
    jobs: int,  # how many processes
    packages: Sequence[Mapping[str, str]],  # the plug-in files that they load first; see ``scenarios.plugins.packed``
    ended: str,  # the message of the error if a process ends
) -> Iterator[Result]:
    """Yield what a task returns for each item, in their order.

    No process outlives the one that calls this, or the iterator: what is under way when that is closed, or when Ctrl-C
    or an error ends it, is ended at once. So an item should be the least work whose result is worth keeping.
    """
    with _running(task, items, jobs, packages, ended) as running:
        for future in running:
            yield future.result()


def as_they_end(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    packages: Sequence[Mapping[str, str]],
    ended: str,
) -> Generator[tuple[int, Result], None, None]:
    """Yield the place of each item and what a task returns for it, as soon as it does: nothing waits for a slower one.

    Arguments, errors and how processes end as in ``in_processes``; but for one job without plug-ins, which could end
    its process, this one is enough.
    """
    if jobs == 1 and not packages:
        yield from enumerate(map(task, items))
        return
    with _running(task, items, jobs, packages, ended) as running:
        places = {future: place for place, future in enumerate(running)}
        for future in as_completed(running):
            yield places[future], future.result()


@contextmanager
def _running(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    packages: Sequence[Mapping[str, str]],
    ended: str,
) -> Iterator[list["Future[Result]"]]:
    if getattr(current_process(), "_inheriting", False):  # as multiprocessing itself asks, with a page of traceback
        raise SystemExit(UNGUARDED)
    others = set(active_children())
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (packages,)) as pool:
        try:
            with _deaf_to_ctrl_c():
                running = [pool.submit(task, item) for item in items]
            yield running
        except BrokenProcessPool:
            raise RunError(ended) from None
        except BaseException:  # Ctrl-C, a task's error, or a caller that stops iterating
            for process in set(active_children()) - others:
                process.kill()
            raise


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Hold Ctrl-C back. Processes that are started meanwhile never get it: it is for the one that started them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(packages: Sequence[Mapping[str, str]]) -> None:
    """Prepare a process: it loads the plug-ins of the one that started it."""
    end_with_parent_of_pool()
    os.dup2(2, 1)  # what plug-ins print must not mix with the results on standard output
    unpack(packages)
