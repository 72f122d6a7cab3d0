"""The command line as a user's shell sees it: a real process, its output and its exit status."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def flmarket() -> Callable[..., Done]:
    """Runs the command with some arguments, in a folder."""

    def run(*arguments: str, cwd: Path | None = None) -> Done:
        command = [sys.executable, "-P", "-m", "tui.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)

    return run


@pytest.fixture(scope="session")
def quick_run(flmarket: Callable[..., Done], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Three rounds of the quickstart scenario: the folder of its run, and what the command printed."""
    out = tmp_path_factory.mktemp("runs")
    return out, flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))


@pytest.fixture(scope="session")
def batch(one_service: str, flmarket: Callable[..., Done], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenario shell.toml and its runs under two policies and two seeds."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "shell.toml").write_text(one_service)
    done = flmarket(
        "run", "shell.toml", "--policy", "random", "--policy", "lcfa", "--seeds", "2", "--jobs", "2", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("complete in") == 4
    return folder
