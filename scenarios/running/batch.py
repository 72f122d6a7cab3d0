"""Many runs: scenarios x sweep points x policies x seeds, each into its own run directory."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flmarket.core.cores import usable_cores
from flmarket.core.errors import InputError, RunError
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.logs.arithmetic import arithmetic, mixtures
from scenarios.logs.directory import LOG, Fresh, State
from scenarios.logs.versions import played_by, skipped_versions
from scenarios.playable import require_playable
from scenarios.running.announce import announce
from scenarios.running.observer import Progress, RunObserver
from scenarios.running.planning import due, plan
from scenarios.running.pool import Pool
from scenarios.running.process import Worker
from scenarios.running.runner import Run, execute

if TYPE_CHECKING:
    from scenarios.running.cluster import Cluster


class BatchFailed(RunError):  # noqa: N818 - it names what happened
    """Some runs of a batch failed."""

    def __init__(self, result: "BatchResult", reason: str) -> None:
        self.result = result  # what became of all runs
        self.complete = [run.directory.path for run in result.complete]  # directories of the runs that are complete
        self.failed = [run.label for run in result.failed]  # labels of those that failed
        count, total = len(self.failed), len(self.failed) + len(self.complete)
        logs = ", ".join(str(run.directory.path / LOG) for run in result.failed[:3]) + (", ..." if count > 3 else "")
        what = "the run failed" if total == 1 else f"{count} of {total} runs failed"
        why = f": {reason}" if count == 1 else f"; the first: {reason}"
        super().__init__(f"{what}: {', '.join(self.failed[:3])}{', ...' if count > 3 else ''} ({logs}){why}")


@dataclass
class BatchResult:
    """The outcome of a batch: its runs, in order."""

    complete: list[Run]
    failed: list[Run]


def play_batch(
    scenarios: Sequence[Scenario],  # this and the next three: see ``plan``
    policies: Sequence[str],
    seeds: Iterable[int],
    out: Path,
    *,
    jobs: int = 1,  # see ``run_all``
    workers: int | None = None,  # training threads of each run; cores divided by jobs if not given
    engine: Literal["local", "ray"] = "local",  # this machine, or a Ray cluster
    ray_address: str | None = None,  # the cluster's; a local one is started if not given
    fresh: Fresh = False,  # see ``run_all``
    fail_fast: bool = False,  # see ``run_all``
    progress: bool = True,  # report progress and notes
    failures: bool = True,  # report failures when they happen; what is raised in the end names them in any case
    words: Callable[[str], str] = str,  # puts reports into the reader's words; see ``flmarket.core.words``
    decision_timeout: float | None = None,  # see ``run_all``
    first: Worker | None = None,  # see ``run_all``
) -> BatchResult:
    """Plan a batch, play it, and report its progress on stderr."""
    from scenarios.running.notes import notes
    from scenarios.running.progress import reporter

    if engine not in ("local", "ray"):
        raise InputError(f"engine = {engine!r}: must be 'local' or 'ray'")
    if ray_address is not None and engine != "ray":
        raise InputError("ray_address is for engine = 'ray'")
    if fresh not in (True, False, "changed"):
        raise InputError(f"fresh = {fresh!r}: must be True, False or 'changed'")
    _require_count("jobs", jobs, 1)
    if workers is not None:
        _require_count("workers", workers, 0)
    _require_timeout(decision_timeout, engine)
    shelf = Shelf()
    runs = plan(scenarios, policies, seeds, out, shelf)
    with ExitStack() as stack:
        cluster = None
        if engine == "ray" and due(runs, fresh=fresh)[0]:
            from scenarios.running.cluster import Cluster

            cluster = stack.enter_context(Cluster(ray_address, cpus=workers or 1))
        observer = stack.enter_context(reporter(quiet=not progress, silent=not failures, words=words))
        for note in notes({run.digest: run.scenario for run in runs}.values(), shelf) if progress else ():
            observer.note(note)
        result = run_all(
            runs,
            shelf,
            observer,
            jobs=jobs,
            workers=threads(jobs, workers),
            fresh=fresh,
            fail_fast=fail_fast,
            cluster=cluster,
            decision_timeout=decision_timeout,
            first=first,
        )
        for note in _caveats(result.complete) if progress else ():
            observer.note(note)
    if result.failed:
        raise BatchFailed(result, observer.reasons[0])
    if missing := [run.label for run in runs if run not in result.complete]:
        raise RunError(f"{len(missing)} of {len(runs)} runs ended without a result: {', '.join(missing[:3])}")
    return result


def _caveats(complete: Iterable[Run]) -> list[str]:
    """Return what complete runs differ in besides what was asked for: their arithmetic, and who played them."""
    metas = [(run.scenario.name, run.directory.meta()) for run in complete]
    arithmetics = mixtures((name, arithmetic(meta)) for name, meta in metas)
    return arithmetics + skipped_versions((name, played_by(meta)) for name, meta in metas)


def threads(jobs: int, wanted: int | None) -> int:
    """Return the training threads of each run: as many as are wanted, else the usable cores divided by jobs."""
    return max(1, usable_cores() // jobs) if wanted is None else wanted


def _require_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise InputError(f"{name} = {value!r}: must be an integer of at least {least}")


def _require_timeout(seconds: object, engine: str) -> None:
    if seconds is None:
        return
    if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise InputError(f"--decision-timeout {seconds!r}: must be a number of seconds above 0")
    if engine == "ray":
        raise InputError(
            "--decision-timeout is not for --engine ray: a task cannot end a policy that hangs; play with --jobs, or "
            "cancel the task"
        )


def run_all(
    runs: Sequence[Run],  # as ``plan`` returns them
    shelf: Shelf,  # gives the data sets
    observer: RunObserver,  # notified of each run
    *,
    # runs at a time, each in a process of its own. With 1, runs are played in this process unless ``first`` or
    # ``decision_timeout`` is given: a policy that ends its process then ends this one.
    jobs: int = 1,
    workers: int = 1,  # training threads of a run
    # start runs over, complete or not: all of them, or with ``changed`` those whose agents or plug-ins have changed
    fresh: Fresh = False,
    fail_fast: bool = False,  # start no more runs after one that failed, and end those under way; they can be resumed
    cluster: "Cluster | None" = None,  # plays the runs, in place of this machine
    # seconds after which a policy that has not returned fails its run; None waits for ever
    decision_timeout: float | None = None,
    # a worker process that was started early, which plays runs even if they are played one at a time; with a cluster it
    # only tries what they name
    first: Worker | None = None,
) -> BatchResult:
    """Execute runs; skip those that are complete; continue after one that failed."""
    todo, complete = due(runs, fresh=fresh)
    # Before any run is played. Runs that differ in the seed alone create the same things.
    different = {(run.digest, run.policy): run.scenario for run in todo}.values()
    with ExitStack() as stack:
        pool = None
        if todo and (first or (not cluster and (jobs > 1 or decision_timeout is not None))):
            count = min(jobs, len(todo))
            pool = stack.enter_context(
                Pool(count, workers=workers, fresh=fresh, first=first, decision_timeout=decision_timeout)
            )
            pool.require_playable(different, observer)
        else:
            for scenario in different:
                require_playable(scenario, shelf)
        for run in complete:
            observer.skipped(run)
        announce(run.directory for run in todo)
        if todo:
            observer.begins(todo, None if cluster else jobs)
        if not todo:
            failed = []
        elif cluster:
            failed = cluster.play(todo, shelf, observer, fresh=fresh, fail_fast=fail_fast)
        elif pool:
            failed = pool.play(todo, observer, fail_fast=fail_fast)
        else:
            failed = _run_here(todo, shelf, observer, workers=workers, fresh=fresh, fail_fast=fail_fast)
    # After fail_fast some runs are neither.
    return BatchResult(
        [run for run in runs if run not in failed and run.directory.state is State.COMPLETE],
        [run for run in runs if run in failed],
    )


def _run_here(
    runs: Iterable[Run], shelf: Shelf, observer: RunObserver, *, workers: int, fresh: Fresh, fail_fast: bool
) -> list[Run]:
    failed = []
    for run in runs:
        observer.started(run)
        try:
            observers = [lambda report, run=run: observer.round_done(run, Progress.of(report))]
            execute(run, shelf, workers=workers, fresh=fresh, observers=observers)
        except RunError as error:
            observer.failed(run, error)
            failed.append(run)
            if fail_fast:
                break
        else:
            observer.completed(run)
    return failed
