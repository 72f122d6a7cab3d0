"""Forks: a run continued from one of its rounds with something changed, and what that came to.

A fork is an ordinary run of the run's scenario with further ``[[interventions]]``, so ``verify``, ``report`` and a
second ``flmarket run`` of its scenario.toml work as for any other. It starts from the run's newest checkpoint, if there
is one from before its round, and its rounds before that are compared with the run's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flmarket.analysis.results.fork_effect import Comparison
from flmarket.analysis.results.run_results import RunResult, Tables
from flmarket.analysis.results.setting import RunSetting
from flmarket.analysis.verification.rerun import require_same_inputs
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.file.policy_choice import policy_again
from scenarios.file.schema import Scenario
from scenarios.file.toml import value_text
from scenarios.loader import dumps, forked, settled
from scenarios.logs.columns import tables_in
from scenarios.logs.directory import CHECKPOINT, RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.playable import require_playable
from scenarios.plugin_files import require_same_plugins
from scenarios.running.batch import play_batch
from scenarios.running.batch_run import Run
from scenarios.running.origin import begin_fork, last_known, original_of, require_same_rounds
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.run_options import PlayOptions, RunOptions

if TYPE_CHECKING:
    import pandas as pd

Changes = Mapping[str, Any]
"""New values by key, as in ``[[interventions]]``: ``{"services.mnist.budget": 10}``."""


@dataclass(frozen=True, slots=True)
class Original:
    """A run that is forked.

    Attributes:
        run: the run; its directory is only read.
        result: the rounds that are compared: all, or of an interrupted run those up to its last checkpoint.
    """

    run: Run
    result: RunResult

    @classmethod
    def open(cls, directory: RunDirectory) -> "Original":
        """Read a complete run, or one that was interrupted after a checkpoint.

        Raises:
            InputError: it is neither, is damaged, or uses a plug-in that is not loaded here.
        """
        complete = directory.state is RunState.COMPLETE
        if complete:
            directory.require_whole(digests=True)
            require_same_plugins(directory.meta()["plugins"], str(directory.path))
        run, known = original_of(directory), last_known(directory.path / CHECKPOINT)
        if complete:  # what differs is to come from the changes alone
            require_same_inputs(directory, run.scenario, Shelf())
        marks = {} if complete or known is None else known.marks
        tables = Tables(directory, {name: mark.size for name, mark in marks.items()})
        played = run.scenario.rounds if complete else int(tables["rounds"]["round"].max())
        return cls(run, _result(run, tables, played))

    def changed(self, round_: int, changes: Changes) -> Scenario:
        """Return the scenario of a fork.

        Raises:
            InputError: there is no such round, or the changes cannot be made or would change nothing.
        """
        count = int(self.result.tables["rounds"]["round"].max())
        if not (isinstance(round_, int) and 1 <= round_ <= count):
            raise InputError(f"round {round_}: {self.run.directory.path} has rounds 1 to {count}; choose one")
        if not changes:
            raise InputError("nothing is changed; name at least one key and its new value")
        exits = zip(self.result.setting.services, self.result.exits, strict=True)
        left = {service for service, number in exits if number is not None and number < round_}
        scenario, problems = forked(self.run.scenario, round_, changes, left)
        if scenario is None:
            raise InputError(f"{named(changes)}: {problems[0]}")
        return scenario

    @property
    def policies(self) -> list[str]:
        """The policy that was chosen for all services, as ``--policy`` takes it; none for those of the scenario."""
        policy = policy_again(self.run.policy, self.run.scenario)
        return [] if policy is None else [policy]


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork, and what its changes came to.

    Attributes:
        changes: new values by key.
        run: the fork's run.
        comparison: the fork compared with its original.
    """

    changes: Changes
    run: Run
    comparison: Comparison

    @property
    def path(self) -> Path:
        """The fork's run directory."""
        return self.run.directory.path

    @property
    def differences(self) -> "pd.DataFrame":
        """All measures of all services, and those of the clients that differ, as the command's CSV file has them."""
        return self.comparison.differences()

    def __str__(self) -> str:
        """Return what differed first, and who left earlier or later, in words."""
        return "\n".join([f"{self.name}: {self.path}", *self.comparison.sentences()])

    @property
    def name(self) -> str:
        """Its changes in a few words: ``services.mnist.budget=10``."""
        return named(self.changes)


def named(changes: Changes) -> str:
    """Return changes as ``--set`` takes them."""
    return ", ".join(f"{key}={it if isinstance(it, str) else value_text(it)}" for key, it in changes.items())


def fork(
    directory: Path,
    round_: int,
    wishes: Sequence[Changes],
    options: PlayOptions,
    out: Path | None = None,
    *,
    progress: bool = True,
) -> list[Fork]:
    """Play forks of a run, and compare each with it.

    Args:
        directory: the run's directory.
        round_: the first round that is changed.
        wishes: the changes of each fork.
        options: how they are played.
        out: the folder of the forks; that of the run if not given.
        progress: report progress on stderr.

    Raises:
        InputError: the run, the round or a change cannot be used; or the run cannot be continued here.
        BatchFailed: a fork failed.
    """
    original = Original.open(RunDirectory(directory))
    scenarios = [original.changed(round_, changes) for changes in wishes]
    out = original.run.directory.path.parents[2] if out is None else out
    shelf = Shelf()
    policies, seed = original.policies, original.run.seed
    runs = plan(scenarios, policies, [seed], out, shelf)
    if len({run.directory.path for run in runs}) < len(wishes):
        raise InputError("two forks are the same; change something else in one of them")
    for run in runs:
        require_playable(run.scenario, shelf)
    todo, _ = split_by_completion(runs, fresh=options.fresh)
    if options.fresh:
        for run in todo:
            with run.directory.locked():
                run.directory.prepare(dumps(settled(run.scenario)), fresh=True)
    for run in todo:
        begin_fork(original.run, run, round_ - 1, shelf)
    batch = RunOptions(out=out, jobs=options.jobs, workers=options.workers)
    play_batch(scenarios, policies, [seed], batch, progress=progress)
    return [_compared(original, run, round_, changes) for run, changes in zip(runs, wishes, strict=True)]


def _compared(original: Original, run: Run, round_: int, changes: Changes) -> Fork:
    """Return a complete fork, compared with its original."""
    path = run.directory.path
    shared = {name: table.path(path).read_bytes() for name, table in tables_in(path).items()}
    require_same_rounds({name: _until(content, round_) for name, content in shared.items()}, original.run.directory)
    last = original.result.setting.scenario.rounds
    return Fork(changes, run, Comparison(original.result, _result(run, Tables(run.directory), last)))


def _result(run: Run, tables: Mapping[str, "pd.DataFrame"], rounds: int) -> RunResult:
    """Return the first rounds of a run, as what is judged."""
    setting = RunSetting(run.scenario.model_copy(update={"rounds": rounds}))
    until = {name: tables[name][tables[name]["round"] <= rounds] for name in ("rounds", "offers")}
    return RunResult.of(setting, run.policy, run.seed, run.directory, until["rounds"], until)


def _until(content: bytes, round_: int) -> bytes:
    """Return what a table holds before a round."""
    lines = content.splitlines(keepends=True)
    return b"".join(lines[:1] + [line for line in lines[1:] if int(line.partition(b",")[0]) < round_])
