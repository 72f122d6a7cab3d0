"""No test leaves a process behind, whatever becomes of it; and what tests start heeds signals, whoever ignores them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import leftovers

LIB = Path(__file__).parent / "lib"
CONFTEST = f"""\
import sys
sys.path.insert(0, {str(LIB)!r})
from support.leftovers import no_process_is_left, prepare, pytest_runtest_call, pytest_unconfigure
prepare()
"""
BEGINNING = """\
import subprocess, sys, time
from pathlib import Path
from support.leftovers import running

def start():
    orphan = 'import subprocess; subprocess.Popen(["sleep", "1000"])'  # whose parent ends
    subprocess.run([sys.executable, "-c", orphan], check=True)
    assert [command for _, command in running()] == ["sleep 1000"]

"""

Session = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """``session("def test(): ...")``: pytest of its own with a module of tests; ``before`` runs first."""

    def begin(tests: str, before: str = "") -> subprocess.Popen[str]:
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "test_it.py").write_text(BEGINNING + tests)
        program = f"import signal, pytest\n{before}\nraise SystemExit(pytest.main(['-q', '-p', 'no:cacheprovider']))"
        return subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    return begin


@pytest.mark.slow
def test_what_a_test_that_fails_has_started_is_ended_before_the_next_begins(session: Session) -> None:
    fails = "def test_fails():\n    start()\n    assert False\n\n"
    out, _ = session(fails + "def test_next():\n    assert not list(running())\n").communicate()
    assert "1 failed, 1 passed" in out


@pytest.mark.slow
def test_what_a_test_that_passes_leaves_is_an_error(session: Session) -> None:
    out, _ = session(
        "import support.leftovers as it\nit.PATIENCE = 0.1\n\ndef test_passes():\n    start()\n"
    ).communicate()
    assert "left behind, and ended now: sleep 1000" in out
    assert "1 passed, 1 error" in out


def test_what_cannot_be_ended_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as what runs as another user now."""

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(leftovers, "running", lambda _: iter([(1, "init")]))
    monkeypatch.setattr(leftovers, "PATIENCE", 0.1)
    monkeypatch.setattr(leftovers.os, "kill", refuse)
    assert leftovers.end() == ["init"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_an_interrupted_session_leaves_nothing(session: Session, how: signal.Signals, tmp_path: Path) -> None:
    waits = "def test_waits():\n    start()\n    Path('begun').touch()\n    time.sleep(1000)\n"
    with session(waits) as running:
        while running.poll() is None and not (tmp_path / "begun").exists():
            time.sleep(0.02)
        running.send_signal(how)
        running.communicate()
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert not list(leftovers.running())


@pytest.mark.slow
def test_what_tests_start_heeds_signals_that_the_session_was_told_to_ignore(session: Session) -> None:
    before = "[signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)]"
    heeds = """\
import signal

def test_heeds():
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.raise_signal(number)  # nothing happens here
        program = f"import signal; signal.raise_signal({number.value})"
        assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode == -number
"""
    out, _ = session(heeds, before).communicate()
    assert "1 passed" in out
