"""Processes that tests started and left behind: found by what they inherited, and ended (where there is ``/proc``)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

MARK = "FLMARKET_TESTS"
"""An environment variable: the test processes above, a worker's after that of its session."""


def mark() -> None:
    """Mark what this process starts from now on."""
    os.environ[MARK] = f"{os.environ.get(MARK, 'tests')} {os.getpid()}"


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
            command = b" ".join(_words(path / "cmdline")).decode(errors="replace")
        except OSError:
            continue
        if state != "Z" and int(path.name) not in helpers and begun >= since - 0.02:
            yield int(path.name), command


def _words(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\0")


def end(since: float = 0.0, patience: float = 0.0) -> list[str]:
    """End what was started since then and does not end by itself; return the commands."""
    deadline = time.monotonic() + patience
    while (found := list(running(since))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid, _ in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [command for _, command in found]
