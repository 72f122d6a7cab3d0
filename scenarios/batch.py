"""Many runs: scenarios x sweep points x policies x seeds, each into its own run directory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from des.records import RoundReport
from fl.errors import RunError
from scenarios.build import Shelf, agents_of
from scenarios.loader import digest, points, with_policy
from scenarios.runner import Run, execute
from scenarios.schema import Scenario
from scenarios.store import AS_CONFIGURED, RunDirectory, State


class Listener(Protocol):
    """Hears how a batch goes; the command line's progress display is one."""

    def started(self, run: Run) -> None:
        """A run begins."""

    def round_done(self, run: Run, report: RoundReport) -> None:
        """A run finished a round."""

    def completed(self, run: Run) -> None:
        """A run finished."""

    def skipped(self, run: Run) -> None:
        """A run was complete already."""

    def failed(self, run: Run, error: Exception) -> None:
        """A run failed; the batch goes on."""


@dataclass
class BatchResult:
    """What became of a batch's runs, in order."""

    complete: list[Run] = field(default_factory=list)
    failed: list[Run] = field(default_factory=list)


def plan(
    scenarios: Iterable[Scenario], policies: Sequence[str], seeds: Sequence[int], out: Path, shelf: Shelf
) -> list[Run]:
    """Return every run of a batch.

    Args:
        scenarios: each may have a sweep.
        policies: one run each, with every service using it; none means the policies that the scenario names.
        seeds: one run each.
        out: where run directories go.
        shelf: gives the data sets, whose digests are part of a run's hash.

    Raises:
        DatasetError: a data set is missing or corrupt.
        CheckpointError: a learned agent can't be read.
    """
    runs = []
    for scenario in scenarios:
        for point in points(scenario):
            # The scenario's own policies count, those of --policy do not: runs to be compared share a directory.
            hash8 = digest(point.scenario, shelf.digests(point.scenario) | agents_of(point.scenario))
            for policy in policies or (AS_CONFIGURED,):
                chosen = point.scenario if policy == AS_CONFIGURED else with_policy(point.scenario, policy)
                for seed in seeds:
                    place = RunDirectory.place(out, scenario.name, hash8, policy, seed)
                    runs.append(Run(chosen, policy, seed, place, hash8, point.values))
    return runs


def run_all(
    runs: Iterable[Run], shelf: Shelf, listener: Listener, *, workers: int = 1, fresh: bool = False
) -> BatchResult:
    """Execute runs one after another; skip those that are complete; go on after one that failed.

    Raises:
        InputError: a data set, an output directory or a policy's options can't be used; this stops the batch.
    """
    result = BatchResult()
    for run in runs:
        if not fresh and run.directory.state is State.COMPLETE:
            listener.skipped(run)
            result.complete.append(run)
            continue
        listener.started(run)
        try:
            observers = [lambda report, run=run: listener.round_done(run, report)]
            execute(run, shelf, workers=workers, fresh=fresh, observers=observers)
        except RunError as error:
            listener.failed(run, error)
            result.failed.append(run)
        else:
            listener.completed(run)
            result.complete.append(run)
    return result
