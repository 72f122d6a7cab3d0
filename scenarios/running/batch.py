"""Many runs: scenarios x sweep points x policies x seeds, each into its own run directory."""

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from fl.data.dqi import PRINTED
from fl.data.embedded import DRAWN
from fl.data.registry import info
from fl.training import fused
from fl.training.models import MODELS
from flmarket.core.errors import RunError
from flmarket.core.text import counted
from scenarios.build import Shelf, backend_of, datasets_of, images_of
from scenarios.file.client_files import without_images
from scenarios.file.schema import Scenario
from scenarios.loader import regimes_of
from scenarios.logs.directory import LOG
from scenarios.logs.run_state import RunState
from scenarios.logs.unlike_runs import mixed_arithmetic, skipped_versions
from scenarios.playable import oddities, require_playable
from scenarios.running.batch_run import Callback, Callbacks, Outcome, Run
from scenarios.running.cluster import Cluster
from scenarios.running.planning import plan_batch, split_by_completion
from scenarios.running.pool import Pool
from scenarios.running.processes import Process
from scenarios.running.progress import Tracker, Tracking, reporter
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute


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
    shelf = Shelf()
    told: list[str] = []
    runs = plan_batch(scenarios, policies, seeds, options, shelf, told.append)
    with ExitStack() as stack:
        observer = stack.enter_context(reporter(quiet=not progress, silent=not failures))
        different = {run.digest: run.scenario for run in runs}.values()
        for note in (*told, *notes(different, shelf)) if progress else ():
            observer.note(note)
        tracking = [stack.enter_context(Tracking(trackers, observer.note))] if trackers else []
        result = run_all(runs, shelf, Callbacks(observer, *tracking), options, first=first)
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
    callback: Callback,  # told of each run
    # with one job and no ``decision_timeout``, runs are played in this process unless ``first`` is given: a policy that
    # ends its process then ends this one
    options: RunOptions = RunOptions(),  # noqa: B008 - it is frozen
    *,
    cluster: Cluster | None = None,  # plays the runs, in place of this machine; the engine ray starts its own
    # a worker process that was started early, which plays runs even if they are played one at a time; with a cluster it
    # only tries what they name
    first: Process | None = None,
) -> BatchResult:
    """Execute runs; skip those that are complete; continue after one that failed."""
    todo, complete = split_by_completion(runs, fresh=options.again)
    # Before any run is played. Runs that differ in the seed alone create the same things.
    different = {(run.digest, run.policy): run.scenario for run in todo}.values()
    apart = options.jobs > 1 or options.decision_timeout is not None
    with ExitStack() as stack:
        if todo and options.engine == "ray" and not cluster:
            cluster = stack.enter_context(Cluster(options.ray_address, cpus=options.workers or 1))
        pool = None
        if todo and (first or (apart and not cluster)):
            pool = stack.enter_context(Pool(min(options.jobs, len(todo)), options, first=first))
            pool.require_playable(different, callback)
        else:
            for scenario in different:
                require_playable(scenario, shelf)
        for run in todo:
            run.directory.announce()
        callback.begin_batch(todo, complete, None if cluster else options.jobs)
        if cluster:
            played = cluster.play(todo, callback, options)
        elif pool:
            played = pool.play(todo, callback)
        else:
            played = _play_here(todo, shelf, callback, options)
        failed = []
        for run, error in stack.enter_context(closing(played)):
            if error is not None:
                failed.append(run)
                if options.fail_fast:  # those under way can be resumed
                    break
    lost = {run.directory for run in failed}
    # After ``fail_fast`` some runs are neither.
    return BatchResult(
        [run for run in runs if run.directory not in lost and run.directory.state is RunState.COMPLETE],
        [run for run in runs if run.directory in lost],
    )


def _play_here(
    runs: Iterable[Run], shelf: Shelf, callback: Callback, options: RunOptions
) -> Generator[Outcome, None, None]:
    for run in runs:
        try:
            execute(run, shelf, callback, workers=options.threads, fresh=options.again)
        except RunError as error:
            yield run, error
        else:
            yield run, None


_OWN = {"plug-in": "a plug-in", "file": "your own"}


def notes(scenarios: Collection[Scenario], shelf: Shelf) -> list[str]:
    """Return the notes on a batch of these scenarios, which have no sweep, each once."""
    texts = []
    for backend in dict.fromkeys(map(backend_of, scenarios)):
        if backend.remark:
            texts.append(backend.remark)
    printed = [scenario for scenario in scenarios if scenario.dqi in PRINTED]
    if any(scenario.dqi == "published" for scenario in printed):
        texts.append(
            'dqi = "published": the paper\'s parameters make DQI fall as data size grows (docs/decisions/dqi.md)'
        )
    for name in sorted({name for scenario in printed for name in datasets_of(scenario)}):
        if info(name).source in _OWN:
            texts.append(
                f"data set {name!r} has the DQI of parameters that were measured on other data; `flmarket calibrate "
                'dqi SCENARIO` measures its own, for dqi = "fitted"'
            )
    for name in sorted({name for scenario in scenarios for name in images_of(scenario)} - DRAWN.keys()):
        dataset = shelf.get(name)
        if (what := _OWN.get(dataset.info.source)) is not None:
            texts.append(f"data set {name!r} is {what}: meta.json holds its digests; publish them with any result")
        elif not dataset.official:
            texts.append(f"data set {name!r}: the files are not known to be the official ones; say so with any result")
    texts += dict.fromkeys(problem for scenario in scenarios for problem in oddities(scenario))
    texts += dict.fromkeys(
        f"{scenario.name}: {counted(len(none), 'client')} without an image: offline in all rounds"
        for scenario in scenarios
        if (none := without_images(scenario))
    )
    texts += [
        f"data set {chosen.dataset!r} is trained as its fits were measured, where the scenario leaves it open: "
        f"{chosen.regime}"
        for chosen in regimes_of(scenarios)
        if chosen.departs
    ]
    obstacles = {problem for scenario in scenarios for problem in _obstacles(scenario)}
    return texts + [
        f"{problem}; training takes the reference path, which is about ten times slower (docs/performance.md)"
        for problem in sorted(obstacles)
    ]


def _obstacles(scenario: Scenario) -> Iterator[str]:
    """Yield why the fused kernel cannot train what it could be expected to: built-in models on a CPU."""
    training = scenario.training
    if training.device != "cpu" or training.kernel == "reference":
        return
    for name in images_of(scenario):
        model = scenario.training_for(name).model
        if MODELS.is_builtin(model) and (problem := fused.obstacle(model, info(name).shape)):
            yield problem
