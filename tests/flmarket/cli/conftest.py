"""The command line as a user's shell sees it: its output and its exit status.

Each command has a test with the fixture ``command``, which runs it in a process of its own, too, in the slow tier.
"""

from pathlib import Path

import pytest

from support.shell import Command, Done, flmarket, process
from support.tiers import slow


@pytest.fixture(params=[flmarket, *slow(process)], ids=["here", "process"])
def command(request: pytest.FixtureRequest) -> Command:
    """Runs the command with some arguments, in a folder: once here, and once in a process of its own."""
    return request.param


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Three rounds of the quickstart scenario: the folder of its run, and what the command printed."""
    out = tmp_path_factory.mktemp("runs")
    return out, flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))


@pytest.fixture(scope="session")
def batch(one_service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenario shell.toml and its runs under two policies and two seeds."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "shell.toml").write_text(one_service)
    words = ("--policy", "random", "--policy", "lcfa", "--seeds", "2")
    done = flmarket("run", "shell.toml", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("complete in") == 4
    return folder
