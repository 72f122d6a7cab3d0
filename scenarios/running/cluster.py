"""Runs on many machines: ``--engine ray`` hands each run to a Ray cluster as a task (extra ``ray``).

No shared file system is needed: a task plays its run in a temporary directory of its own machine and returns the files,
which are written here. A run whose machine is lost is started over on another one, and comes to the same bytes. Every
machine needs flmarket, of the same version, and the data sets.
"""

import hashlib
import json
import os
import platform
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from fl.training import fused
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import PACKAGES, ROOT, WrongCodeError, require_extra, version
from flmarket.core.plugin_errors import describe
from scenarios.build import Shelf
from scenarios.loader import dumps, settled
from scenarios.logs.directory import RunDirectory
from scenarios.plugin_files import unpack
from scenarios.running.batch_run import Callback, Outcome, Run
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute, message_of
from scenarios.running.worker import play_message, unpickled

RETRIES = 3  # times that a run is started over because its machine was lost
WRITERS = 8  # runs whose files are written at the same time
TICK = 0.05  # seconds after which runs that have been written are reported

Returned = Mapping[str, Any]
"""The result of a task: ``files``, the content of the run's files by name; ``error``, what went wrong, or None;
``refused``, whether the error is in what was asked for, not in the run. Plain data: see ``_task``."""


def _task(
    root: str,  # where this flmarket lies; a machine that has one there uses that
) -> Callable[[str], Returned]:
    """Return the function that a task runs on some machine of the cluster.

    Ray puts the driver's current directory before everything else on its workers' path, where a source checkout would
    shadow the installed flmarket. So the function is sent by value (no module holds it), takes and returns plain data,
    and has imported nothing of flmarket before the path is right.
    """

    def play(asked: str) -> Mapping[str, Any]:
        import importlib.util
        import platform
        import sys
        from pathlib import Path

        found = importlib.util.find_spec("fl")
        here = Path(found.origin).resolve().parents[1] if found and found.origin else None
        if here != Path(root) and Path(root, "scenarios", "running", "cluster.py").is_file():
            sys.path.insert(0, root)
            importlib.invalidate_caches()
        try:
            from scenarios.running.cluster import play_there
        except ImportError as error:
            problem = f"the Ray worker on {platform.node()} has no flmarket of this version: {error}; install it there"
            return {"files": {}, "error": problem, "refused": True}
        return play_there(asked)

    return play


@cache
def fingerprint() -> dict[str, str]:
    """Return what distinguishes this flmarket from another one: version, SHA-256 of its Python code, kernel in use.

    Two machines with equal fingerprints run the same code, wherever it lies.
    """
    digest = hashlib.sha256()
    for name in PACKAGES:
        for path in sorted((ROOT / name).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return {
        "version": version(),
        "code": digest.hexdigest()[:16],
        "kernel": fused.ARITHMETIC if fused.available() else "reference",
    }


def require_same_installation(
    theirs: Mapping[str, str],  # the other process's ``fingerprint``
    whose: str,  # what the message calls this process: ``worker on node7``
) -> None:
    """Check that this process runs the same flmarket as the one it works for."""
    own = fingerprint()
    different = [f"{key} {own[key]!r} instead of {theirs.get(key)!r}" for key in own if own[key] != theirs.get(key)]
    if different:
        raise WrongCodeError(
            f"the {whose} runs another flmarket, from {ROOT}: {', '.join(different)}; its results could differ. "
            "Install the same version there, and start outside of source checkouts"
        )


@cache
def _shelf() -> Shelf:
    """Return the data sets of this worker process, which plays one run after another."""
    return Shelf()


def play_there(
    # JSON: the worker's ``play_message``, and the ``fingerprint`` of the flmarket where the batch was planned
    asked: str,
) -> Returned:
    """Play a run on the machine that this is called on, and return its files."""
    wanted = json.loads(asked)
    with tempfile.TemporaryDirectory(prefix="flmarket-") as folder:
        error, refused = None, False
        try:
            require_same_installation(wanted["fingerprint"], f"Ray worker on {platform.node()}")
            unpack(wanted["plugins"])
            run = replace(unpickled(wanted["run"]), directory=RunDirectory(Path(folder)))
            execute(run, _shelf(), workers=wanted["workers"])
        except (Exception, SystemExit) as problem:
            error, refused = message_of(problem), isinstance(problem, InputError)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
        return {"files": files, "error": error, "refused": refused}


class Cluster:
    """A Ray cluster that plays runs. As a context manager: a cluster or connection of its own ends with it."""

    def __init__(
        self,
        address: str | None,  # the head's address; None starts a local cluster
        *,
        cpus: int,  # that a run asks for, which is also its number of training threads
    ) -> None:
        self._cpus = cpus
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ours = signal.getsignal(signal.SIGTERM)
            try:
                self._ray.init(address=address, include_dashboard=None if address else False, log_to_driver=False)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InputError(f"the Ray cluster {address} cannot be reached: {error}") from error
            finally:
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, ours)  # Ray has set its own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._ours:
            self._ray.shutdown()

    def play(
        self,
        runs: Iterable[Run],  # to be played; what an interrupted one left is started over
        callback: Callback,  # told of each
        options: RunOptions,
    ) -> Generator[Outcome, None, None]:
        """Yield each run that is over, and what it failed with."""
        ray = self._ray
        waiting = deque(runs)
        playing: dict[Any, Run] = {}
        writing: dict[Future[None], Run] = {}  # what takes longest is the disk, which writes several at once
        task = ray.remote(num_cpus=self._cpus, max_retries=RETRIES)(_task(str(ROOT)))
        with ThreadPoolExecutor(WRITERS) as pool:
            try:
                while waiting or playing or writing:
                    places = self._places() if waiting else 0  # nodes come and go
                    while waiting and len(playing) < places:
                        run = waiting.popleft()
                        with run.directory.locked():
                            run.directory.prepare(dumps(settled(run.scenario)), fresh=options.again)
                        callback.begin(run, 0)
                        gpus = 1 if run.scenario.training.device == "cuda" else 0
                        playing[task.options(num_gpus=gpus).remote(self._asked(run))] = run
                    if playing:
                        for done in ray.wait(list(playing), timeout=TICK if writing else None)[0]:
                            run = playing.pop(done)
                            writing[pool.submit(self._bring_back, run, done)] = run
                    else:
                        wait(writing, return_when=FIRST_COMPLETED)
                    for written in [it for it in writing if it.done()]:
                        run = writing.pop(written)
                        error = _failure(written)
                        callback.end(run, error)
                        yield run, error
            except ray.exceptions.RayError as error:
                raise RunError(f"the Ray cluster is lost: {describe(error)}; the same command continues") from error
            finally:
                with suppress(ray.exceptions.RayError):
                    for left in playing:
                        ray.cancel(left, force=True)

    def _bring_back(
        self,
        run: Run,
        task: Any,  # which is over
    ) -> None:
        """Write a run's files into its directory; raise what went wrong with it."""
        errors = self._ray.exceptions
        try:
            returned: Returned = self._ray.get(task)
        except errors.RayTaskError as error:  # of a worker that is no flmarket of this version
            raise RunError(f"failed on its Ray worker: {describe(error.cause)}") from error
        except errors.RayError as error:
            raise RunError(f"lost with its machine, {RETRIES + 1} times: {error}") from error
        with run.directory.locked():
            run.directory.replace(returned["files"])
        if returned["refused"]:
            raise InputError(f"{run.label}: {returned['error']}")
        if returned["error"] is not None:
            raise RunError(returned["error"])

    def _asked(self, run: Run) -> str:
        return json.dumps(play_message(run, workers=self._cpus, fresh=False) | {"fingerprint": fingerprint()})

    def _places(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1) // self._cpus))


def _failure(written: Future[None]) -> RunError | None:
    try:
        written.result()
    except RunError as error:
        return error
    return None


def _import_ray() -> ModuleType:
    require_extra("ray", "the engine ray", "Ray", "ray")
    return import_module("ray")
