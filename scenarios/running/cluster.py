"""Runs on many machines: ``--engine ray`` hands each run to a Ray cluster as a task (extra ``ray``).

No shared file system is needed: a task plays its run in a temporary directory of its own machine and returns the files,
which are written here. A run whose machine is lost is started over on another one, and comes to the same bytes. Every
machine needs flmarket, of the same version, and the data sets.
"""

import os
import platform
import tempfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from fl.errors import InputError, RunError
from scenarios.build import Shelf
from scenarios.loader import dumps
from scenarios.logs.directory import RunDirectory
from scenarios.plugins import packed, unpack
from scenarios.running.listener import Listener
from scenarios.running.runner import Run, execute

RETRIES = 3
"""Times that a run is started over because its machine was lost."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What a task brings back.

    Attributes:
        files: of the run's directory, by name.
        error: what went wrong, or None.
        refused: the error is in what was asked for, not in the run.
    """

    files: Mapping[str, bytes]
    error: str | None = None
    refused: bool = False


def play_there(run: Run, workers: int, data: Mapping[str, str], plugins: Sequence[Mapping[str, str]] = ()) -> Returned:
    """Play a run on the machine that this is called on, and return its files.

    Args:
        run: what to play; its directory is not used.
        workers: training threads.
        data: the digests that the run's data sets have where the batch was planned.
        plugins: the plug-in files that are loaded there.
    """
    shelf = Shelf()
    with tempfile.TemporaryDirectory(prefix="flmarket-") as folder:
        there = replace(run, directory=RunDirectory(Path(folder)))
        error, refused = None, False
        try:
            unpack(plugins)
            _check_data(shelf.digests(run.scenario), data)
            execute(there, shelf, workers=workers)
        except Exception as problem:
            error, refused = str(problem) or repr(problem), isinstance(problem, InputError)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
        return Returned(files, error, refused)


class Cluster:
    """A Ray cluster that plays runs."""

    def __init__(self, address: str | None, *, cpus: int) -> None:
        """Connect to a cluster, or start one on this machine.

        Args:
            address: of its head; None starts a local one.
            cpus: that a run asks for, which is also its number of training threads.

        Raises:
            InputError: ray is not installed, or the cluster can't be reached.
        """
        self._cpus = cpus
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            try:
                self._ray.init(address=address, include_dashboard=None if address else False, log_to_driver=False)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InputError(f"--ray-address {address}: the cluster can't be reached: {error}") from error

    def play(
        self, runs: Iterable[Run], shelf: Shelf, listener: Listener, *, fresh: bool = False, fail_fast: bool = False
    ) -> list[Run]:
        """Play runs; return those that failed.

        Args:
            runs: to be played; what an interrupted one left is started over.
            shelf: gives the data sets, which must be the same everywhere.
            listener: hears of each.
            fresh: replace what is there, complete or not.
            fail_fast: end with the first run that fails.

        Raises:
            InputError: an output directory or a policy's options can't be used.
        """
        ray = self._ray
        waiting, failed = deque(runs), []
        under_way: dict[object, Run] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self._places():
                    run = waiting.popleft()
                    with run.directory.locked():
                        run.directory.prepare(dumps(run.scenario), fresh=fresh)
                    listener.started(run)
                    gpus = 1 if run.scenario.training.device == "cuda" else 0
                    task = ray.remote(num_cpus=self._cpus, num_gpus=gpus, max_retries=RETRIES)(play_there)
                    under_way[task.remote(run, self._cpus, shelf.digests(run.scenario), packed())] = run
                [done], _ = ray.wait(list(under_way), num_returns=1)
                run = under_way.pop(done)
                try:
                    _bring_back(run, ray.get(done))
                except ray.exceptions.RayError as error:
                    problem: RunError = RunError(f"lost with its machine, {RETRIES + 1} times: {error}")
                except RunError as error:
                    problem = error
                else:
                    listener.completed(run)
                    continue
                listener.failed(run, problem)
                failed.append(run)
                if fail_fast:
                    break
        finally:
            for task in under_way:
                ray.cancel(task, force=True)
            if self._ours:
                ray.shutdown()
        return failed

    def _places(self) -> int:
        """Return how many runs fit on the cluster as it is now."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1) // self._cpus))


def _bring_back(run: Run, returned: Returned) -> None:
    """Write a run's files into its directory; raise what went wrong with it."""
    with run.directory.locked():
        run.directory.replace(returned.files)
    if returned.refused:
        raise InputError(f"{run.label}: {returned.error}")
    if returned.error is not None:
        raise RunError(returned.error)


def _check_data(here: Mapping[str, str], planned: Mapping[str, str]) -> None:
    if here != planned:
        raise InputError(f"{platform.node()} holds other data sets than the machine that planned the batch")


def _import_ray() -> ModuleType:
    try:
        return import_module("ray")
    except ImportError as error:
        raise InputError("--engine ray needs Ray: pip install 'flmarket[ray]'") from error
