"""Spreads independent tasks over processes, and gives their results in order, whatever the number of processes."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from fl.errors import RunError
from scenarios.plugins import unpack

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    packages: Sequence[Mapping[str, str]],
    ended: str,
) -> Iterator[Result]:
    """Yield what a task returns for each item, in their order.

    Args:
        task: a function of a module, or a ``partial`` of one: it is pickled.
        items: what it is called with.
        jobs: how many processes.
        packages: the plug-in files that they load first; see ``scenarios.plugins.packed``.
        ended: the message of the error if a process ends.

    Raises:
        RunError: a process ended; and whatever the task raises.
    """
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (packages,)) as pool:
        running = [pool.submit(task, item) for item in items]
        try:
            for future in running:
                yield future.result()
        except BrokenProcessPool:
            raise RunError(ended) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(packages: Sequence[Mapping[str, str]]) -> None:
    """Prepare a process: Ctrl-C is for the one that started it, which loaded the same plug-ins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unpack(packages)
