"""Try mutants on a copy of the tree: do the nearest tests fail?"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from mutants.places import nearest

NONE_LEFT = 5
"""The exit status of pytest where all tests are slow."""

IGNORED = shutil.ignore_patterns(".*", "__pycache__", "runs", "build", "*.egg-info")


@contextmanager
def copy_of(root: Path) -> Iterator[Path]:
    """Copy the tree to a folder that goes away afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(root, copy, ignore=IGNORED)
        yield copy


class Outcome(StrEnum):
    """The fate of a mutant."""

    PASSED = "survived"
    FAILED = "found"
    LATE = "timed out"


def outcome(copy: Path, tests: Iterable[Path], seconds: float) -> Outcome:
    """Run the fast tests among some on a copy of the tree, at most for some time. None sees the real images."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    command += ["-m", "not slow"]
    # Mutants share a copy: without compiled files, none is taken for another one of the same second.
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FLMARKET_DATA": str(copy / ".data"),
        "OMP_NUM_THREADS": "1",
    }
    with (
        (copy / ".output").open("w") as output,
        subprocess.Popen(
            [*command, *map(str, tests)],
            cwd=copy,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as process,
    ):
        try:
            return Outcome.PASSED if process.wait(seconds) in (0, NONE_LEFT) else Outcome.FAILED
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that tests have started
            return Outcome.LATE


def attempt(copy: Path, module: Path, mutated: str, seconds: float, tests: Iterable[Path] = ()) -> Outcome:
    """Run tests, or the nearest ones, with a mutated module."""
    path = copy / module
    original = path.read_bytes()
    path.write_text(mutated, encoding="utf-8")
    try:
        return outcome(copy, tests or nearest(copy, module), seconds)
    finally:
        path.write_bytes(original)


class Record:
    """The mutants that were found in earlier calls: a line of JSON for each."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a line that a kill cut off is dropped."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
        self._found = {tuple(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._found

    def add(self, key: tuple[str, str]) -> None:
        """Keep that a mutant was found: its name and its diff."""
        self._found.add(key)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(key) + "\n")
