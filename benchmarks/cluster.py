"""Batches of short runs on a real Ray cluster: several nodes on this machine, some of which are killed while they play.

    python benchmarks/cluster.py [--only lost|workers]

The head plays nothing, and a node has one worker. With one worker each, ``--jobs`` and nodes have the same threads.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat as repeat_it
from pathlib import Path
from statistics import median
from typing import Any

from measure import Report, processes_under, waited_for

from scenarios.logs.directory import RunDirectory
from scenarios.running.cluster import WRITERS

ROUNDS = 80
KILLS = 4
RUN = [sys.executable, "-P", "-m", "flmarket.cli.main", "run", "paper", "--backend", "surrogate", "--workers", "1"]
COUNTED = '''\
from flmarket import Policy, fill_budget, policy


@policy("counted")
class Counted(Policy):
    """Takes low cost first, and writes down each round in which the first service is asked."""

    summary = "low cost first, counted"

    def act(self, observation):
        if observation.service == observation.services[0]:
            with open({!r}, "a") as file:
                file.write("x")
        payments = observation.own_bids
        return fill_budget(payments.argsort(), payments, observation.budget, available=observation.available)
'''
NOBODY_LEAVES = [f"--set=services.{name}.target_accuracy=1.0" for name in ("mnist", "fashion-mnist", "emnist")]


class Nodes:
    """A Ray cluster on this machine. Its CPU time is watched: workers end with their job, and nobody waits for them."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._memory = {"object_store_memory": 80_000_000}
        head = {"num_cpus": 0, "include_dashboard": False, **self._memory}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add() for _ in range(count)]
        self._cluster.wait_for_nodes()
        self._taken: dict[int, float] = {}
        self._own = [pid for node in (self._cluster.head_node, *self.nodes) for pid in self._roots(node)]
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    @property
    def computing(self) -> float:
        """Seconds of CPU that the cluster has taken."""
        return sum(self._taken.values())

    def add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, **self._memory)

    def kill(self, node: Any) -> None:
        """Kill a node and its workers as a power cut does."""
        for pid in processes_under(self._roots(node)):
            with suppress(ProcessLookupError):  # workers end with their node
                os.kill(pid, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._own = []
        self._cluster.shutdown()

    @staticmethod
    def _roots(node: Any) -> list[int]:
        return [info.process.pid for kind in node.all_processes.values() for info in kind]

    def _watch(self) -> None:
        while self._own:
            self._taken |= processes_under(self._own)
            time.sleep(0.1)


@contextmanager
def cluster(count: int) -> Iterator[Nodes]:
    nodes = Nodes(count)
    try:
        yield nodes
    finally:
        nodes.close()


def lost(report: Report, folder: Path, runs: int) -> None:
    """Kill one of two nodes after each fifth of the runs, in the middle of what it plays; another one joins."""
    (folder / "counted.py").write_text(COUNTED.format(str(folder / "played")))
    policy = ["--plugin", str(folder / "counted.py"), "--policy", "counted", "--rounds", str(ROUNDS), *NOBODY_LEAVES]
    complete, kills = list[str](), 0
    with cluster(2) as nodes:
        command = [*RUN, *policy, "--seeds", str(runs), "--out", str(folder / "lost")]
        command += ["--engine", "ray", "--ray-address", nodes.address]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as batch:
            assert batch.stderr is not None
            for line in batch.stderr:
                complete += re.findall(r"seed (\d+): complete", line)
                if kills < KILLS and len(complete) > (kills + 1) * runs // (KILLS + 1):
                    kills += 1
                    time.sleep(0.1 * kills)  # into its run
                    nodes.kill(nodes.nodes.pop())
                    nodes.nodes.append(nodes.add())
    assert batch.returncode == 0, batch.returncode
    metas = [json.loads(path.read_text()) for path in (folder / "lost").glob("*/*/*/meta.json")]
    there = {meta["seed"] for meta in metas if meta["status"] == "complete" and meta["rounds"] == ROUNDS}
    subprocess.run([*RUN[:4], "verify", str(folder / "lost")], check=True, stdout=subprocess.DEVNULL)
    what = f"{runs:,} runs on two Ray nodes, {kills} times one killed and another joining"
    report.figure(f"{what}: missing, or refused by `verify`", "runs", [runs - len(there)])
    report.figure(f"{what}: written twice", "runs", [len(complete) - len(set(complete))])
    again = (folder / "played").stat().st_size - runs * ROUNDS
    report.figure(f"{what}: played again, of {runs * ROUNDS:,}", "rounds", [again])


def seconds(command: list[str]) -> tuple[float, float]:
    """Return what a command takes by the clock, and by CPU with the processes that it waits for."""
    begun, before = time.perf_counter(), waited_for()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun, waited_for() - before


def workers(report: Report, folder: Path, runs: int, repeat: int) -> None:
    """Let one and two workers of this machine and of a cluster take turns, and work out what limits many workers."""
    with cluster(1) as one, cluster(2) as two:

        def play(count: int, *how: str, nodes: Nodes | None = None) -> tuple[float, float, float]:
            """Return seconds by the clock, of CPU of the command, and of CPU of the cluster."""
            before = nodes.computing if nodes else 0.0
            out = ["--seeds", str(count), "--fresh", "--quiet", "--out", str(folder / "-".join(map(str, how[:2])))]
            clock, cpu = seconds([*RUN, "--policy", "random", *out, *how])
            time.sleep(0.3)
            return clock, cpu, nodes.computing - before if nodes else 0.0

        def ray(nodes: Nodes, count: int) -> Callable[[], tuple[float, float, float]]:
            return partial(play, count, "--engine", "ray", "--ray-address", nodes.address, nodes=nodes)

        contestants = {
            "jobs 1": partial(play, runs, "--jobs", "1"),
            "jobs 2": partial(play, runs, "--jobs", "2"),
            "ray 1": ray(one, runs),
            "ray 2": ray(two, runs),
            "start": ray(two, 2),
        }
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in contestants}
        for _ in range(repeat):
            for name, call in contestants.items():
                taken[name].append(call())
                print(name, *(f"{it:.2f}" for it in taken[name][-1]), file=sys.stderr)
    clock = {name: [it[0] for it in found] for name, found in taken.items()}
    cpu = {name: [it[1] + it[2] for it in found] for name, found in taken.items()}
    report.times(f"{runs} short runs, `--jobs 2` against `--jobs 1`", clock["jobs 1"], clock["jobs 2"])
    report.times(f"{runs} short runs, two Ray workers against one", clock["ray 1"], clock["ray 2"])
    report.times(f"{runs} short runs, two Ray workers against `--jobs 2`", clock["jobs 2"], clock["ray 2"])
    report.times(f"{runs} short runs, CPU of two Ray workers against `--jobs 2`", cpu["ray 2"], cpu["jobs 2"])
    report.figure("a batch of 2 short runs on Ray, which starts two workers", "s", clock["start"])
    report.figure("a Ray worker until its first run is complete", "s of CPU", [it[2] / 2 for it in taken["start"]])
    more = runs - 2
    driver, far = (
        [(many[place] - few[place]) / more for many, few in zip(taken["ray 2"], taken["start"], strict=True)]
        for place in (1, 2)
    )
    report.figure("a short run on Ray, in its worker and the nodes", "ms of CPU", [1000 * it for it in far])
    report.figure("a short run on Ray, in the command", "ms of CPU", [1000 * it for it in driver])
    writing = written(folder)
    report.figure(f"the files of a short run, {WRITERS} written at a time", "ms", [1000 * it for it in writing])
    each = max(median(driver), median(writing))
    for many in (8, 64):
        report.figure(f"the shortest runs that keep {many} Ray workers busy, worked out", "s", [many * each])


def written(folder: Path, count: int = 64, repeat: int = 6) -> list[float]:
    """Return how long the files of a run take where the command writes those of several at once."""
    [one, *_] = sorted(path.parent for path in folder.glob("*/*/*/*/meta.json"))
    files = {path.name: path.read_bytes() for path in one.iterdir()}
    taken = []
    for turn in range(repeat):
        places = [RunDirectory(folder / "written" / f"{turn}-{it}") for it in range(count)]
        for place in places:
            place.announce()
        begun = time.perf_counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(RunDirectory.replace, places, repeat_it(files)))
        taken.append((time.perf_counter() - begun) / count)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["lost", "workers"], help="measure this part alone")
    parser.add_argument("--runs", type=int, default=1000, help="runs of the batch that loses a node (default: 1000)")
    parser.add_argument("--short", type=int, default=60, help="runs of the other batches (default: 60)")
    parser.add_argument("--repeat", type=int, default=6, help="repetitions of the other batches (default: 6)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="keep nothing in benchmarks/results/")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part in ("lost", "workers"):
            if chosen.only in (None, part):
                report = Report(save=chosen.save)
                report.part = part
                if part == "lost":
                    lost(report, Path(folder), chosen.runs)
                else:
                    workers(report, Path(folder), chosen.short, chosen.repeat)
                report.close()


if __name__ == "__main__":
    main()
