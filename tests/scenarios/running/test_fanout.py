"""Tasks in several processes, which never outlive the one that started them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from flmarket.core.errors import RunError
from scenarios.running.pool import as_they_end
from support.terminal import alive, wait_for
from support.tiers import slow

TASKS = """\
import os, time
from pathlib import Path


def sleep(item):
    Path(f"{item}.begun").write_text(str(os.getpid()))
    time.sleep(0 if item == 0 else 600)
    return item


def nap(seconds):
    time.sleep(seconds)
    return seconds


def divide(item):
    return 1 / item
"""

SLOW = """\
from pathlib import Path
from scenarios.running.pool import as_they_end
from spread_tasks import sleep

for place, item in as_they_end(sleep, range(9), 2, [], "ended"):
    Path(f"{item}.done").touch()
"""


@pytest.fixture(autouse=True)
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of tasks, which all processes can import."""
    (tmp_path / "spread_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    yield import_module("spread_tasks")
    del sys.modules["spread_tasks"]


@pytest.mark.slow
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
        assert parent.wait(60) == -how
        assert parent.stderr is not None
        said = parent.stderr.read()
    assert said.count("Traceback") == (how is signal.SIGINT)  # the script's own; none of a process that it started
    wait_for(lambda: not any(map(alive, pids)))
    assert len(list(tmp_path.glob("*.begun"))) == 3


@pytest.mark.slow
def test_a_script_without_a_guard_may_spread_tasks(tmp_path: Path) -> None:
    program = "from scenarios.running.pool import as_they_end\nprint(dict(as_they_end(abs, [-1, 2], 2, [], 'ended')))\n"
    (tmp_path / "bare.py").write_text(program)
    done = subprocess.run([sys.executable, "bare.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {"{0: 1, 1: 2}\n", "{1: 2, 0: 1}\n"}


@pytest.mark.slow
def test_an_error_is_raised_where_the_results_are_wanted_with_its_traceback_in_words(tasks: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        list(as_they_end(tasks.divide, [1, 0], 2, [], "ended"))
    [note] = caught.value.__notes__
    assert "in divide" in note


def test_a_process_that_ends_is_named() -> None:
    with pytest.raises(RunError, match="it has ended"):
        list(as_they_end(os._exit, [3], 2, [], "it has ended"))


@pytest.mark.slow
def test_what_is_over_first_does_not_wait_for_what_is_slower(tasks: ModuleType) -> None:
    results = as_they_end(tasks.nap, [600.0, 0.0, 0.1], 2, [], "ended")
    assert [next(results), next(results)] == [(1, 0.0), (2, 0.1)]
    results.close()
