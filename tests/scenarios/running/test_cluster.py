"""The Ray engine on a real cluster of two nodes: the same bytes as at home, also when a node is killed half-way."""

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.logs.directory import State
from scenarios.running.batch import plan, run_all
from scenarios.running.cluster import Cluster
from scenarios.running.listener import Progress
from scenarios.running.runner import Run

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'flmarket[ray]')")

# Ray leaves sockets and processes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore")


class Listener:
    def __init__(self, cluster: Any = None, victim: Any = None) -> None:
        self.heard: list[tuple[str, int, str]] = []
        self._cluster, self._victim = cluster, victim

    def started(self, run: Run) -> None:
        self.heard.append(("started", run.seed, ""))

    def round_done(self, run: Run, progress: Progress) -> None: ...

    def completed(self, run: Run) -> None:
        self.heard.append(("completed", run.seed, ""))
        if self._victim is not None:
            self._cluster.remove_node(self._victim, allow_graceful=False)
            self._victim = None

    def skipped(self, run: Run) -> None:
        self.heard.append(("skipped", run.seed, ""))

    def failed(self, run: Run, error: Exception) -> None:
        self.heard.append(("failed", run.seed, str(error)))


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


@pytest.mark.timeout(180)
def test_a_batch_on_two_nodes_of_which_one_is_killed_gives_the_same_bytes(
    two_nodes: tuple[Any, Any], one_service: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    cluster, victim = two_nodes
    shelf, scenario = Shelf(), parse(one_service)
    seeds = [0, 1, 2, 3]
    here = plan([scenario], [], seeds, tmp_path / "here", shelf)
    run_all(here, shelf, Listener(), workers=0)

    there = plan([scenario], [], seeds, tmp_path / "there", shelf)
    listener = Listener(cluster, victim)
    result = run_all(there, shelf, listener, cluster=Cluster(cluster.address, cpus=1))
    assert result.complete == there, listener.heard
    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")
    assert len({run.directory.meta()["seed"] for run in there}) == len(seeds)
    assert not ray.is_initialized()

    again = Listener()
    failing = parse(one_service, overrides=["training.learning_rate=100", "training.local_epochs=20", "name=bad"])
    runs = [*there, *plan([failing], [], [0], tmp_path / "there", shelf)]
    result = run_all(runs, shelf, again, cluster=Cluster(cluster.address, cpus=1))
    assert [word for word, *_ in again.heard] == ["skipped"] * 4 + ["started", "failed"]
    assert "diverged" in again.heard[-1][2]
    assert result.failed[0].directory.state is State.INCOMPLETE
    assert "diverged" in (result.failed[0].directory.path / "run.log").read_text()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
