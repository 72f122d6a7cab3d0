"""The outermost guard: what escapes becomes a sentence, or the traceback of a defect, and an exit status."""

import errno
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from flmarket.core.crash import guarded
from flmarket.core.errors import InputError, RunError
from scenarios.running.steering import Start


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InputError("no such\x1b run"), 2, [r"no such\x1b run"]),
        (RunError("two\nlines"), 1, ["two\nlines"]),
        (KeyboardInterrupt(), 130, []),
        (SystemExit(3), 3, []),
        (SystemExit("no"), 1, ["no"]),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, []),
        (PermissionError(errno.EACCES, "Permission denied", "runs"), 2, ["runs: Permission denied"]),
        (MemoryError("17 GiB"), 1, ["out of memory: MemoryError: 17 GiB; do less at a time, or play a smaller market"]),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            1,
            [
                "out of memory: RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory; do less at a "
                "time, or play a smaller market"
            ],
        ),
        (OSError(errno.ENOSPC, "No space left on device"), 1, ["No space left on device"]),
    ],
)
def test_what_is_foreseen_has_its_sentence_and_status(error: BaseException, status: int, said: list[str]) -> None:
    def work() -> None:
        raise error

    found: list[str] = []
    assert guarded(work, found.append) == status
    assert found == said


def test_a_mistake_in_the_users_own_code_is_named() -> None:
    def work() -> None:
        {}["price"]

    said: list[str] = []
    assert guarded(work, said.append) == 1
    assert said == [f"{__file__}:{work.__code__.co_firstlineno + 1}, in work: KeyError: 'price'"]


def test_a_defect_in_a_runner_process_is_in_its_log_and_told_to_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import scenarios.running.worker as worker\nworker.unpack = lambda *_: {}.popitem()\nworker.Worker().serve()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"do": "watch", "plugins": [], **asdict(Start("name = 1", "f", str(tmp_path)))}) + "\n",
        capture_output=True,
        text=True,
    )
    for text in (json.loads(done.stdout)["error"], done.stderr):
        assert "KeyError: 'popitem(): dictionary is empty'" in text
        assert "This is a defect of flmarket. Please report it" in text
