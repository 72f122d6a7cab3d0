"""Many runs: scenarios x sweep points x policies x seeds, each into its own run directory."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flmarket.core.errors import RunError
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.logs.directory import LOG
from scenarios.logs.mixtures import mixed_arithmetic, skipped_versions
from scenarios.logs.run_state import RunState
from scenarios.playable import require_playable
from scenarios.running.observer import RunObserver, Tracker, Tracking
from scenarios.running.options import RunOptions
from scenarios.running.planning import due, expand, planned
from scenarios.running.pool import Pool
from scenarios.running.processes import Process
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
    scenarios: Sequence[Scenario],  # this and the next two: see ``scenarios.running.planning``
    policies: Sequence[str],
    seeds: Iterable[int],
    options: RunOptions = RunOptions(),  # noqa: B008 - it is frozen
    *,
    progress: bool = True,  # report progress and notes
    failures: bool = True,  # report failures when they happen; what is raised in the end names them in any case
    first: Process | None = None,  # see ``run_all``
    trackers: Sequence[Tracker] = (),  # follow the runs that are played
) -> BatchResult:
    """Plan a batch, play it, and report its progress on stderr."""
    from scenarios.running.notes import notes
    from scenarios.running.progress import reporter

    shelf = Shelf()
    policies, left_out = expand(policies, scenarios, shelf)
    runs = planned(scenarios, policies, seeds, options, shelf, left_out.append)
    with ExitStack() as stack:
        cluster = None
        if options.engine == "ray" and due(runs, fresh=options.again)[0]:
            from scenarios.running.cluster import Cluster

            cluster = stack.enter_context(Cluster(options.ray_address, cpus=options.workers or 1))
        observer = stack.enter_context(reporter(quiet=not progress, silent=not failures))
        about = notes({run.digest: run.scenario for run in runs}.values(), shelf)
        for note in (*left_out, *about) if progress else ():
            observer.note(note)
        told = stack.enter_context(Tracking(observer, trackers)) if trackers else observer
        result = run_all(runs, shelf, told, options, cluster=cluster, first=first)
        for note in _caveats(result.complete) if progress else ():
            observer.note(note)
    if result.failed:
        raise BatchFailed(result, observer.reasons[0])
    complete = {run.directory for run in result.complete}
    if missing := [run.label for run in runs if run.directory not in complete]:
        raise RunError(f"{len(missing)} of {len(runs)} runs ended without a result: {', '.join(missing[:3])}")
    return result


def _caveats(complete: Iterable[Run]) -> list[str]:
    """Return what complete runs differ in besides what was asked for: their arithmetic, and who played them."""
    metas = [(run.scenario.name, run.directory.meta()) for run in complete]
    return mixed_arithmetic(metas) + skipped_versions(metas)


def run_all(
    runs: Sequence[Run],  # as ``plan`` returns them
    shelf: Shelf,  # gives the data sets
    observer: RunObserver,  # notified of each run
    # with one job and no ``decision_timeout``, runs are played in this process unless ``first`` is given: a policy that
    # ends its process then ends this one
    options: RunOptions = RunOptions(),  # noqa: B008 - it is frozen
    *,
    cluster: "Cluster | None" = None,  # plays the runs, in place of this machine
    # a worker process that was started early, which plays runs even if they are played one at a time; with a cluster it
    # only tries what they name
    first: Process | None = None,
) -> BatchResult:
    """Execute runs; skip those that are complete; continue after one that failed."""
    todo, complete = due(runs, fresh=options.again)
    # Before any run is played. Runs that differ in the seed alone create the same things.
    different = {(run.digest, run.policy): run.scenario for run in todo}.values()
    apart = options.jobs > 1 or options.decision_timeout is not None
    with ExitStack() as stack:
        pool = None
        if todo and (first or (apart and not cluster)):
            pool = stack.enter_context(Pool(min(options.jobs, len(todo)), options, first=first))
            pool.require_playable(different, observer)
        else:
            for scenario in different:
                require_playable(scenario, shelf)
        for run in complete:
            observer.skipped(run)
        for run in todo:
            run.directory.announce()
        if todo:
            observer.begins(todo, None if cluster else options.jobs)
        if not todo:
            failed = []
        elif cluster:
            failed = cluster.play(todo, observer, options)
        elif pool:
            failed = pool.play(todo, observer)
        else:
            failed = _run_here(todo, shelf, observer, options)
    lost = {run.directory for run in failed}
    # After ``fail_fast`` some runs are neither.
    return BatchResult(
        [run for run in runs if run.directory not in lost and run.directory.state is RunState.COMPLETE],
        [run for run in runs if run.directory in lost],
    )


def _run_here(runs: Iterable[Run], shelf: Shelf, observer: RunObserver, options: RunOptions) -> list[Run]:
    failed = []
    for run in runs:
        observer.started(run)
        try:
            observers = [lambda report, run=run: observer.progressed(run, report.round, report.services)]
            execute(run, shelf, workers=options.threads, fresh=options.again, observers=observers)
        except RunError as error:
            observer.failed(run, error)
            failed.append(run)
            if options.fail_fast:
                break
        else:
            observer.completed(run)
    return failed
