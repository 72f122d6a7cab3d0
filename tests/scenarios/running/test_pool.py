"""Batches over several processes: the same bytes, failures that stay alone, and nothing left behind."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flmarket.core import plugins
from scenarios.build import Shelf
from scenarios.loader import dumps, load, parse
from scenarios.logs.directory import RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.running import processes
from scenarios.running.batch import run_all
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.run_options import RunOptions
from support.observers import Observer
from support.terminal import PATIENCE, wait_for

MARK = uuid.uuid4().hex

# Where the test is about processes: they need not import torch.
SURROGATE = ["training.backend=surrogate", "training.local_epochs=2"]

# One raises in its third round, one waits in every round as long as the environment says.
ODD = """
import os, time
from learning.policies.random import RandomPolicy

class Odd(RandomPolicy):
    def act(self, observation):
        if observation.round == 3:
            raise ZeroDivisionError("an odd policy")
        return super().act(observation)

class Slow(RandomPolicy):
    def act(self, observation):
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0")))
        return super().act(observation)
"""


@pytest.fixture(scope="module")
def text(one_service: str) -> str:
    return one_service + '[sweep]\n"clients.cores" = [1, 2]\n'


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An installed package with odd policies, for this process and its children."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "odd_policies.py").write_text(ODD)
    info = folder / "odd_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flmarket.policies]\nodd = odd_policies:Odd\nslow = odd_policies:Slow\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        plugins._declared.cache_clear()
        yield folder
    plugins._declared.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def mark() -> Iterator[None]:
    """What our children's children are known by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLMARKET_TEST", MARK)
        yield


def children() -> set[str]:
    """The worker processes that these tests started, at any remove."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words, environment = ((path / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"scenarios.running.worker" in words and f"FLMARKET_TEST={MARK}".encode() in environment:
            found.add(path.name)
    return found


@pytest.mark.slow
def test_two_jobs_give_the_same_bytes_as_one(
    text: str, tmp_path: Path, shelf: Shelf, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    scenario = parse(text)
    for jobs in (1, 2):
        observer = Observer()
        runs = plan([scenario], ["random", "lcfa"], [0, 1], tmp_path / str(jobs), shelf)
        result = run_all(runs, shelf, observer, RunOptions(jobs=jobs, workers=0))
        assert result.complete == runs
        assert not result.failed
        assert len(observer.said("completed")) == 8
        if jobs == 1:
            rounds = observer.said("round")
            assert rounds == [1, 2, 3, 4] * 8
    assert files_of(tmp_path / "1") == files_of(tmp_path / "2")
    assert len(files_of(tmp_path / "1")) == 4 * 8


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("jobs", [1, 2])
def test_fail_fast_starts_no_more_runs(jobs: int, text: str, tmp_path: Path, shelf: Shelf) -> None:
    runs = plan([parse(text, overrides=SURROGATE)], ["odd"], [0, 1, 2], tmp_path, shelf)
    observer = Observer()
    result = run_all(runs, shelf, observer, RunOptions(jobs=jobs, workers=0, fail_fast=True))
    assert len(result.failed) == 1
    assert len(observer.said("started")) <= jobs


def test_a_foreign_directory_stops_a_batch_before_anything_runs(text: str, tmp_path: Path, shelf: Shelf) -> None:
    runs = plan([parse(text)], [], [0], tmp_path, shelf)
    runs[-1].directory.path.mkdir(parents=True)
    (runs[-1].directory.path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunDirectoryError, match=r"thesis\.tex"):
        run_all(runs, shelf, Observer(), RunOptions(jobs=2))
    assert runs[0].directory.state is RunState.WAITING


def test_a_complete_run_of_another_seed_is_refused(text: str, tmp_path: Path, shelf: Shelf) -> None:
    runs = plan([parse(text, overrides=["sweep.clients.cores=[1]"])], [], [0, 1], tmp_path, shelf)
    run_all(runs[:1], shelf, Observer(), RunOptions(workers=0))
    assert split_by_completion(runs) == (runs[1:], runs[:1])
    runs[0].directory.path.rename(runs[1].directory.path)
    with pytest.raises(RunDirectoryError, match="belongs to a run with seed 0, not 1"):
        split_by_completion(runs)


@pytest.mark.slow  # tests/scenarios/running/test_fanout.py interrupts processes in the fast tier
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["Ctrl-C", "SIGTERM", "SIGKILL"])
def test_an_interrupted_batch_leaves_no_process_and_goes_on(
    how: signal.Signals,
    text: str,
    tmp_path: Path,
    shelf: Shelf,
    plugin: Path,
    files_of: Callable[[Path], dict[str, bytes]],
) -> None:
    (tmp_path / "batch.toml").write_text(dumps(parse(text, overrides=SURROGATE)))
    command = [sys.executable, "-P", "-m", "flmarket.cli.main", "run", "batch.toml", "--policy", "slow", "--jobs", "2"]
    slowly = os.environ | {"SLOW_SECONDS": "1"}  # on a busy machine, too, the signal comes before the last round
    process = subprocess.Popen(command, cwd=tmp_path, env=slowly, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(tmp_path.glob("runs/*/slow/*/rounds.csv"))) == 2)
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(how, -how)
    wait_for(lambda: not children())
    if how is not signal.SIGKILL:
        done = subprocess.run([*command, "--quiet"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        scenario = load(str(tmp_path / "batch.toml"))
        run_all(plan([scenario], ["slow"], [0], tmp_path / "whole", shelf), shelf, Observer(), RunOptions(workers=0))
        assert files_of(tmp_path / "runs") == files_of(tmp_path / "whole")


@pytest.mark.usefixtures("plugin")
@pytest.mark.slow
def test_how_far_a_run_in_a_worker_is_can_be_read_from_its_files(
    text: str, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from those that it had before it was started over."""
    monkeypatch.setenv("SLOW_SECONDS", "0.5")
    runs = plan([parse(text, overrides=[*SURROGATE, "sweep.clients.cores=[1]"])], ["slow"], [0], tmp_path, shelf)
    for fresh in (False, True):
        observer = Observer()
        assert run_all(runs, shelf, observer, RunOptions(jobs=2, workers=0, fresh=fresh)).complete == runs
        rounds = observer.said("round")
        assert rounds
        assert rounds == sorted(set(rounds))  # type: ignore[type-var]
        assert rounds[0] < 4  # type: ignore[operator]


def test_a_worker_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    with processes.Processes[int](1) as workers:
        os.kill(workers.add(processes.Process()).pid, signal.SIGSTOP)  # deaf to anything but SIGKILL
    assert not children()
