"""Plays a job in other frameworks, each in the virtual environment where ``make bench-peers`` has installed it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import processes_under, waited_for
from peers.workload import Job

from fl.arrays import IntArray
from fl.data.dataset import Dataset

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("FLMARKET_PEERS", HERE.parent / ".venv-peers"))
PEERS = {"flower": "Flower", "fedlab": "FedLab", "pfl": "pfl-research", "blazefl": "BlazeFL"}
LIMIT = 600.0
"""Seconds after which a command is left out."""
SAMPLED = 0.2
"""Seconds between two looks at a command's processes."""


@dataclass(frozen=True)
class Whole:
    """What a whole command took, with all its processes."""

    out: str
    seconds: float
    cpu: float  # seconds
    memory: float  # MB at the peak, shared pages once; 0 where there is no /proc


class FailedError(Exception):
    """A command failed, or took too long."""


def write(folder: Path, job: Job, dataset: Dataset, clients: Sequence[IntArray]) -> None:
    """Write a job; the images and what each client owns of them as flmarket reads them."""
    np.savez(
        folder / "images.npz",
        pixels=np.concatenate([dataset.train_images, dataset.test_images]),
        labels=np.concatenate([dataset.train_labels, dataset.test_labels]),
        split=np.repeat(np.array([0, 1], dtype=np.uint8), [len(dataset.train_labels), len(dataset.test_labels)]),
    )
    (folder / "partition.json").write_text(
        json.dumps({str(client): own.tolist() for client, own in enumerate(clients)})
    )
    (folder / "job.json").write_text(json.dumps(asdict(job)))


def installed() -> dict[str, list[str]]:
    """Return each installed peer's command, and report those that are missing."""
    found = {}
    for name in PEERS:
        python = FOLDER / name / "bin" / "python"
        if python.exists():
            found[name] = [str(python), str(HERE / "peers" / f"{name}_peer.py")]
        else:
            print(f"{name}: skipped, there is no {python} (`make bench-peers`, FLMARKET_PEERS)")
    return found


def plain() -> list[str]:
    """Return the command of the plain loop."""
    return [sys.executable, str(HERE / "peers" / "plain_peer.py")]


def play(name: str, command: Sequence[str], folder: Path) -> tuple[dict[str, Any], Whole] | None:
    """Play the job in a folder; return what the peer's clock reported, and the whole command, or None if it fails."""
    # One torch thread each, so that nobody's CPU time contains waiting; where the clock counts, the page says so.
    environment = os.environ | {"FLMARKET_WORKLOAD": str(folder), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        whole = watched(command, environment)
    except FailedError as error:
        print(f"{name}: left out, {error}")
        return None
    return json.loads(whole.out.splitlines()[-1]), whole


def watched(command: Sequence[str], environment: Mapping[str, str]) -> Whole:
    """Run a command, and watch the memory and the computing time of all its processes."""
    start, before = time.perf_counter(), waited_for()
    peak, computing = 0.0, dict[int, float]()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    while True:
        try:
            out, errors = process.communicate(timeout=SAMPLED)
            break
        except subprocess.TimeoutExpired:
            tree = processes_under([process.pid])
            computing |= tree
            peak = max(peak, sum(map(memory, tree)))
            if time.perf_counter() > start + LIMIT:
                for pid in tree:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.communicate()
                raise FailedError(f"it took longer than {LIMIT:.0f} s") from None
    if process.returncode:
        raise FailedError(f"it failed\n{errors[-800:]}")
    # Ray does not wait for its workers, so that the system knows less of their time than was seen.
    cpu = max(waited_for() - before, sum(computing.values()))
    return Whole(out, time.perf_counter() - start, cpu, peak)


def memory(pid: int) -> float:
    """Return a process's memory in MB, with its share of what it shares."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1000
    return 0.0
