"""The Ray engine on a real cluster of two nodes: the same bytes as at home, also when a node is killed half-way."""

import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flmarket.core.errors import RunError
from flmarket.core.installation import PACKAGES, ROOT, command
from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from scenarios.running.batch import play_batch, run_all
from scenarios.running.batch_run import Run
from scenarios.running.cluster import Cluster, fingerprint, play_there
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions
from scenarios.running.worker import play_message
from support.observers import Observer

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'flmarket[ray]')")

# Ray leaves sockets and processes to the garbage collector.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Killing(Observer):
    """Kills a node when the first run is complete."""

    def __init__(self, cluster: Any, victim: Any) -> None:
        super().__init__()
        self._cluster, self._victim = cluster, victim

    def end(self, run: Run, error: RunError | None) -> None:
        super().end(run, error)
        if self._victim is not None:
            self._cluster.remove_node(self._victim, allow_graceful=False)
            self._victim = None


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """A head that plays nothing, and two nodes with a CPU each; the second one is to be killed."""
    from ray.cluster_utils import Cluster as LocalCluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    memory = {"object_store_memory": 80_000_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = LocalCluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **memory}
        )
        cluster.add_node(num_cpus=1, **memory)
        victim = cluster.add_node(num_cpus=1, **memory)
        cluster.wait_for_nodes()
        yield cluster, victim
        cluster.shutdown()


def test_a_batch_on_two_nodes_of_which_one_is_killed_gives_the_same_bytes(
    two_nodes: tuple[Any, Any], one_service: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    cluster, victim = two_nodes
    shelf, scenario = Shelf(), parse(one_service)
    seeds = [0, 1, 2, 3]
    here = plan([scenario], [], seeds, tmp_path / "here", shelf)
    run_all(here, shelf, Observer(), RunOptions(workers=0))

    there = plan([scenario], [], seeds, tmp_path / "there", shelf)
    observer = Killing(cluster, victim)
    with Cluster(cluster.address, cpus=1) as nodes:
        result = run_all(there, shelf, observer, cluster=nodes)
    assert result.complete == there, observer.notified
    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")
    assert len({run.directory.meta()["seed"] for run in there}) == len(seeds)
    assert not ray.is_initialized()

    again = Observer()
    failing = parse(one_service, overrides=["training.learning_rate=100", "training.local_epochs=20", "name=bad"])
    runs = [*there, *plan([failing], [], [0], tmp_path / "there", shelf)]
    with Cluster(cluster.address, cpus=1) as nodes:
        result = run_all(runs, shelf, again, cluster=nodes)
    assert [word for word, *_ in again.notified] == ["skipped"] * 4 + ["started", "failed"]
    assert "diverged" in again.notified[-1][2]
    assert result.failed[0].directory.state is RunState.FAILED
    assert "diverged" in (result.failed[0].directory.path / "run.log").read_text()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def copy_of_the_code(folder: Path) -> None:
    """Make a source checkout without a compiled kernel."""
    for name in PACKAGES:
        for path in (ROOT / name).rglob("*"):
            if path.suffix in {".py", ".json", ".toml", ".safetensors"}:
                (folder / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                (folder / path.relative_to(ROOT)).write_bytes(path.read_bytes())


def test_started_inside_a_source_checkout_workers_run_the_commands_own_code(
    one_service: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    """Ray puts the current directory first on its workers' path; a checkout there has no compiled kernel."""
    copy_of_the_code(tmp_path)
    (tmp_path / "small.toml").write_text(one_service)
    for options in (["--engine", "ray", "--out", "ray"], ["--out", "here"]):
        run = command("flmarket.cli.main", "run", "small.toml", "--workers", "1", "--quiet", *options)
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "here")
    kernels = [json.loads(meta.read_text())["kernel"] for meta in tmp_path.glob("*/*/*/*/meta.json")]
    assert len(kernels) == 2
    assert kernels[0] == kernels[1]


def test_a_worker_with_another_flmarket_refuses(one_service: str, tmp_path: Path) -> None:
    """The driver sends its fingerprint; nothing is played where it differs."""
    [run] = plan([parse(one_service)], [], [0], tmp_path, Shelf())
    asked = play_message(run, workers=0, fresh=False)
    returned = play_there(json.dumps(asked | {"fingerprint": fingerprint() | {"version": "0.0.1"}}))
    assert returned["refused"]
    assert returned["files"] == {}
    assert "runs another flmarket, from " in returned["error"]
    assert "instead of '0.0.1'" in returned["error"]


CHANGED_BEFORE_ITS_WORKERS_START = """\
import sys
from pathlib import Path
from flmarket.core.installation import ROOT
from scenarios.running.cluster import fingerprint
from scenarios.running import cluster
from flmarket.cli.main import main

fingerprint()
changed = Path(ROOT, "scenarios", "running", "cluster.py")
changed.write_text(changed.read_text().replace({!r}, {!r}))
main()
"""


def run_with_changed_workers(before: str, after: str, scenario: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Play a scenario with Ray, whose workers find another text in cluster.py than the command had."""
    copy_of_the_code(folder)
    (folder / "small.toml").write_text(scenario)
    program = CHANGED_BEFORE_ITS_WORKERS_START.format(before, after)
    return subprocess.run(
        [sys.executable, "-c", program, "run", "small.toml", "--engine", "ray", "--workers", "1", "--quiet"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


@pytest.mark.parametrize(
    ("before", "after", "begin", "end"),
    [
        (
            "RETRIES = 3",
            "RETRIES = 4",
            "runs another flmarket, from {root}: code '",
            "; its results could differ. Install the same version there, and start outside of source checkouts",
        ),
        (
            "def play_there",
            "def play_elsewhere",
            "has no flmarket of this version: cannot import name 'play_there' from 'scenarios.running.cluster' (",
            "); install it there",
        ),
    ],
    ids=["other code", "too old"],
)
def test_a_batch_whose_workers_have_another_flmarket_ends_with_one_line(
    before: str, after: str, begin: str, end: str, one_service: str, tmp_path: Path
) -> None:
    done = run_with_changed_workers(before, after, one_service, tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    [line] = [line for line in done.stderr.splitlines() if " -- " not in line]  # without Ray's own
    assert line.startswith(f"small (as-configured) seed 0: the Ray worker on {platform.node()} ")
    assert begin.format(root=tmp_path) in line
    assert line.endswith(end)
    assert not list(tmp_path.glob("runs/*/*/*/meta.json"))


def test_a_worker_that_does_not_understand_its_order_fails_the_run(one_service: str, tmp_path: Path) -> None:
    done = run_with_changed_workers("json.loads(asked)\n", "json.loads(asked)['nothing']\n", one_service, tmp_path)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "small (as-configured) seed 0" in done.stderr
    assert "failed on its Ray worker: KeyError: 'nothing'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_sigterm_ends_a_batch_as_it_does_without_ray(tmp_path: Path) -> None:
    words = ["run", "quickstart", "--engine=ray", "--rounds=100000", f"--out={tmp_path / 'runs'}"]
    with subprocess.Popen(command("flmarket.cli.main", *words), stderr=subprocess.PIPE, text=True) as batch:
        while not [*tmp_path.rglob("scenario.toml")] and batch.poll() is None:
            time.sleep(0.1)
        batch.terminate()
        assert "interrupted; the same command continues" in batch.communicate()[1]
    assert batch.returncode == 143


def test_a_batch_with_nothing_left_to_play_ends_its_cluster(one_service: str, tmp_path: Path) -> None:
    scenarios = [parse(one_service)]
    play_batch(scenarios, [], [0], RunOptions(out=tmp_path), progress=False)
    play_batch(scenarios, [], [0], RunOptions(out=tmp_path, engine="ray", workers=1), progress=False)
    assert not ray.is_initialized()
