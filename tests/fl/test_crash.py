"""The outermost guard: what escapes becomes one line and an exit status."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fl.crash import guarded
from fl.errors import InputError, RunError
from scenarios.running.protocol import Start


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("no such\x1b run"), 2, r"no such\x1b run"),
        (RunError("two\nlines"), 1, "two\nlines"),
        (KeyboardInterrupt(), 130, None),
        (SystemExit(3), 3, None),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 9000), 2, f"{'x' * 197}...: File name too long"),
        (OSError(errno.ENOSPC, "No space left on device"), 1,
         "No space left on device; the same command continues from what is there"),
    ],
)  # fmt: skip
def test_what_is_foreseen_has_its_line_and_status(error: BaseException, status: int, line: str | None) -> None:
    def work() -> None:
        raise error

    said: list[str] = []
    assert guarded(work, said.append) == status
    assert said == ([] if line is None else [line])


def test_endless_recursion_is_a_short_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def work() -> object:
        return work()

    said: list[str] = []
    assert guarded(work, said.append) == 70
    assert said[0].startswith("this is a defect of flmarket: RecursionError: ")
    [report] = tmp_path.rglob("crash-*.txt")
    assert report.stat().st_size < 50_000


def test_a_defect_in_a_runner_process_is_a_line_in_its_log_and_for_whoever_started_it(tmp_path: Path) -> None:
    program = (
        "import sys\nimport scenarios.running.serve as serve\nfrom fl.crash import guarded\n"
        "serve.parse = lambda *_: 1 / 0\nsys.exit(guarded(serve.main))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=Start("name = 1", "f", str(tmp_path)).line() + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.returncode == 70
    [report] = tmp_path.rglob("crash-*.txt")
    for text in (done.stdout, done.stderr):
        assert "this is a defect of flmarket: ZeroDivisionError" in text
        assert str(report) in text
    assert "Traceback" not in done.stderr
