"""Processes that tests started and left behind: found by what they inherited, and ended (where there is ``/proc``).

A conftest imports the fixture and the hooks, and calls ``prepare``.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest

MARK = "FLMARKET_TESTS"
"""An environment variable: the test processes above, a worker's after that of its session."""


PATIENCE = 60.0
"""Seconds in which what is on its way to its end gets there."""


def prepare(*, worker: bool = False) -> None:
    """Mark what this process starts from now on, and take care of signals.

    One that is ignored, as under nohup, is ignored by a function from now on, which nothing that is started inherits.
    """
    os.environ[MARK] = f"{os.environ.get(MARK, 'tests')} {os.getpid()}"
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
        elif not worker:  # which ends with the process that started it
            signal.signal(number, signal.default_int_handler)


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0


def running(since: float = 0.0) -> Iterator[tuple[int, str]]:
    """Yield the number and the command of each process that this one started since then, at any remove."""
    own = f"{MARK}={os.environ[MARK]}".encode()
    # These serve the whole session.
    helpers = (resource_tracker._resource_tracker._pid, forkserver._forkserver._forkserver_pid)  # type: ignore[attr-defined]
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if not any(entry == own or entry.startswith(own + b" ") for entry in _words(path / "environ")):
                continue
            state, *fields = (path / "stat").read_text().rpartition(")")[2].split()
            begun = int(fields[18]) / os.sysconf("SC_CLK_TCK")
            command = b" ".join(_words(path / "cmdline")).decode(errors="replace").strip()
        except OSError:
            continue
        if state != "Z" and int(path.name) not in helpers and begun >= since - 0.02:
            yield int(path.name), command


def _words(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\0")


def end(since: float = 0.0, *, patience: float = 0.0) -> list[str]:
    """End what was started since then and does not end by itself; return the commands."""
    deadline = time.monotonic() + patience
    while (found := dict(running(since))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in found:
        with suppress(OSError):  # it has ended, or is another user's now
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while found.keys() & dict(running(since)).keys() and time.monotonic() < deadline:
        time.sleep(0.01)
    return [*found.values()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test that fails leaves no process to the others."""
    begun = now()
    try:
        return (yield)
    except BaseException:
        end(begun)
        raise


@pytest.fixture(autouse=True, scope="module")
def no_process_is_left() -> Iterator[None]:
    yield
    if left := end(patience=PATIENCE):
        pytest.fail("left behind, and ended now: " + ", ".join(left))


@pytest.hookimpl(tryfirst=True)  # before what reports to a terminal that may be gone
def pytest_unconfigure() -> None:
    """Leave nothing behind, also if interrupted."""
    end()
