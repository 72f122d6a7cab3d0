"""Runs for notebooks and scripts: ``flmarket.run`` plays them, ``read`` reads them, and ``fork`` continues one."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from operator import index
from typing import Annotated, Any

from annotated_doc import Doc

from flmarket.analysis.dataframes import Results
from flmarket.analysis.what_if.fork import Fork
from flmarket.analysis.what_if.fork import fork as play_forks
from flmarket.api import scenarios_of
from flmarket.core.declared import arguments_of
from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from learning.policy import POLICIES, Policy
from scenarios.file.schema import Scenario
from scenarios.plugin_files import require_no_plugin_file
from scenarios.running.batch import play_batch
from scenarios.running.progress import Tracker
from scenarios.running.run_options import Place, PlayOptions, RunOptions


@dataclass(frozen=True)
class Batch(RunOptions):
    """The arguments of ``run``."""

    scenario: Annotated[
        "Place | Scenario | Sequence[Place | Scenario]",
        Doc("A scenario, a file, the name of a built-in scenario, or several of these; each may have a sweep."),
    ]
    policies: Annotated[
        "str | type[Policy] | Iterable[str | type[Policy]]",
        Doc("""For every service; one run each. A name, a name with options (``fmore(weight=4)``) or with the file of
        a trained agent (``mahdrl:agent.safetensors``), ``all`` for every policy that can play, or a class of your
        own. If none is given: the scenario's, with their options."""),
    ] = ()
    seeds: Annotated["int | Iterable[int]", Doc("One run each; a number N means the seeds 0 to N - 1.")] = 1
    _: KW_ONLY
    progress: Annotated[bool, Doc("Report progress, notes and failures on stderr.")] = True
    trackers: Annotated[
        "Sequence[Tracker]", Doc("Follow the runs that are played: ``[flmarket.TensorBoard('curves')]``.")
    ] = ()


@arguments_of(Batch)
def run(batch: Batch) -> Results:
    """Run scenarios, and return what their runs came to.

    Runs that are already complete in ``out`` are read, not played again; an interrupted one continues from its last
    checkpoint.

    With ``jobs=1`` runs are played in this process, where a debugger and ``print`` work; with ``decision_timeout`` in
    processes of their own, too. Whatever a policy raises, SystemExit too, fails its run and no other; but one that ends
    or crashes its process ends this one.

    Raises:
        InputError: a scenario, a policy, a data set or a directory cannot be used; or a plug-in file calls this.
        BatchFailed: some runs failed; names them and the first one's reason; ``read(*error.complete)`` gives the
            others.
    """
    require_no_plugin_file("run")
    policies, seeds = batch.policies, batch.seeds
    chosen = list(policies) if isinstance(policies, Iterable) and not isinstance(policies, str | type) else [policies]
    try:
        played = play_batch(
            scenarios_of(batch.scenario, batch.values),
            POLICIES.names_of(chosen),
            range(seeds) if isinstance(seeds, int) else seeds,
            batch,
            progress=batch.progress,
            failures=batch.progress,
            trackers=batch.trackers,
        )
    except KeyboardInterrupt as error:
        error.add_note("the same call continues each interrupted run from its last checkpoint")
        raise
    return Results([run.directory.path for run in played.complete])


def read(*sources: Place) -> Results:
    """Return the complete runs among and below the given directories.

    Raises:
        InputError: there is none, or a log is damaged.
    """
    if not sources:
        raise InputError("no directory is given; name at least one, such as read('runs')")
    return Results([expanded(source) for source in sources])


@dataclass(frozen=True)
class Forks(PlayOptions):
    """The arguments of ``fork``."""

    run: Annotated[Place, Doc("The run's directory.")]
    round_: Annotated[int, Doc("The first round that is changed.")]
    changes: Annotated[
        "Mapping[str, Any] | Sequence[Mapping[str, Any]]",
        Doc("""New values by key: ``services.NAME.budget``, ``services.NAME.policy`` (a name, or a class of your
        own), ``market.mechanism``, ``clients.cores``, ``clients.offline``; or several of these, one fork each."""),
    ]
    _: KW_ONLY
    out: Annotated[Place | None, Doc("The folder for the forks' run directories; that of the run if not given.")] = None
    progress: Annotated[bool, Doc("Report progress on stderr.")] = True


@arguments_of(Forks)
def fork(forks: Forks) -> list[Fork]:
    """Continue a run from one of its rounds with something changed; return each fork with its original.

    A fork is a run like any other. It begins at the original's newest checkpoint before that round, or
    at round 1.

    Raises:
        InputError: the run, the round or a change cannot be used, or the run cannot be continued on this machine.
        BatchFailed: a fork failed.
    """
    require_no_plugin_file("fork")
    changes, round_ = forks.changes, forks.round_
    several = isinstance(changes, Iterable) and not isinstance(changes, Mapping | str)
    changes_per_fork: list[Any] = list(changes) if several else [changes]
    if wrong := [changed for changed in changes_per_fork if not isinstance(changed, Mapping)]:
        raise InputError(f"changes: must be a mapping such as {{'clients.cores': 2}}, or several, not {wrong[0]!r}")
    with_policy_names = [
        {key: POLICIES.names_of([value])[0] if isinstance(value, type) else value for key, value in changed.items()}
        for changed in changes_per_fork
    ]
    with suppress(TypeError):  # no integer; ``play_forks`` says which ones there are
        round_ = index(round_)  # NumPy's are welcome
    out = None if forks.out is None else expanded(forks.out)
    return play_forks(expanded(forks.run), round_, with_policy_names, forks, out, progress=forks.progress)
