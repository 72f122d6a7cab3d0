"""Tasks in several processes, which never outlive the one that started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.running.fanout import UNGUARDED, as_they_end, in_processes
from support.tiers import slow

SLOW = """\
import os, time
from pathlib import Path
from scenarios.running.fanout import in_processes


def sleep(item):
    Path(f"{item}.begun").write_text(str(os.getpid()))
    time.sleep(0 if item == 0 else 600)
    return item


if __name__ == "__main__":
    for item in in_processes(sleep, range(9), 2, [], "ended"):
        Path(f"{item}.done").touch()
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    "how", [signal.SIGINT, *slow(signal.SIGTERM, signal.SIGKILL)], ids=["Ctrl-C", "SIGTERM", "SIGKILL"]
)
def test_no_process_outlives_the_one_that_started_it(how: signal.Signals, tmp_path: Path) -> None:
    """The signal goes to the group, as Ctrl-C does; SIGKILL to the one process alone."""
    (tmp_path / "slow.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "slow.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        wait_for(
            lambda: len(list(tmp_path.glob("*.begun"))) == 3 and all(map(Path.read_text, tmp_path.glob("*.begun")))
        )
        wait_for((tmp_path / "0.done").exists)
        pids = {int(path.read_text()) for path in tmp_path.glob("*.begun")}
        assert len(pids) == 2
        os.kill(parent.pid, how) if how is signal.SIGKILL else os.killpg(parent.pid, how)
        assert parent.wait(30) == -how
        assert parent.stderr is not None
        said = parent.stderr.read()
    assert said.count("Traceback") == (how is signal.SIGINT)  # the script's own; none of a process that it started
    wait_for(lambda: not any(map(alive, pids)))
    assert len(list(tmp_path.glob("*.begun"))) == 3


def test_a_script_that_its_processes_would_play_again_is_told_what_to_do(tmp_path: Path) -> None:
    """By a line of each; the one traceback is the script's own."""
    program = "from scenarios.running.fanout import in_processes\nlist(in_processes(abs, [1], 1, [], 'ended'))\n"
    (tmp_path / "bare.py").write_text(program)
    done = subprocess.run([sys.executable, "bare.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert (done.stderr.count(UNGUARDED), done.stderr.count("Traceback")) == (1, 1)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_results_come_in_order_and_what_nobody_waits_for_is_ended() -> None:
    results = in_processes(nap, [0.3, 0.0, 600.0], 2, [], "ended")
    assert [next(results), next(results)] == [0.3, 0.0]
    results.close()


def test_what_is_over_first_does_not_wait_for_what_is_slower() -> None:
    results = as_they_end(nap, [600.0, 0.0, 0.1], 2, [], "ended")
    assert [next(results), next(results)] == [(1, 0.0), (2, 0.1)]
    results.close()
