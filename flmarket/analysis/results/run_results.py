"""Results of complete runs, read from their logs: the numbers behind reports and figures.

A service that left early counts until the last round of its scenario, with accuracy and reward held and nothing spent.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from des.log_records import Outcome
from des.money import MICRO
from des.observation import Status
from fl.arrays import FloatArray
from flmarket.analysis.results.setting import Setting, settings_of
from flmarket.analysis.tables import TableName, read_table
from flmarket.core.errors import InputError
from flmarket.core.tracking import tracked
from learning.statistics.time_to_target import RoundsToTarget
from scenarios.logs.arithmetic import arithmetic, mixtures
from scenarios.logs.columns import CLIENTS
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import complete_runs
from scenarios.logs.versions import mixed_versions, played_by

_HELD = ("accuracy", "test_accuracy", "reward")
_MONEY = ("offered", "spent")
_COUNTS = ("wanted", "served", "refused")


@dataclass(frozen=True)
class RunResult:
    """One run. Arrays have the axes [round, service], over all N rounds; money is in units."""

    directory: RunDirectory  # the directory of its logs
    setting: Setting  # what it shares with other runs
    policy: str  # the run's label
    policies: tuple[str, ...]  # [M] the services' policies
    seed: int  # the run's seed
    accuracy: FloatArray  # after each round, in [0, 1]; rewards and exits follow from it
    reported: FloatArray  # the accuracy on test images, which tables and figures show
    reward: FloatArray  # Omega^accuracy, as in the paper
    offered: FloatArray  # money in each round
    spent: FloatArray  # money in each round
    wanted: FloatArray  # offers in each round
    served: FloatArray  # offers in each round
    refused: FloatArray  # offers in each round
    to_target: RoundsToTarget  # [M] when each target was met, counted from the service's arrival

    @cached_property
    def offers(self) -> pd.DataFrame:
        """The run's offers. Like ``earnings``, read when it is first asked for."""
        return self._read("offers")

    @cached_property
    def earnings(self) -> pd.DataFrame:
        """A row for each offer that was served: what its client was paid and what the work cost it, in units.

        ``missing`` are images that it reported and did not have, negative if it had more. Truthful clients have none,
        and their cost is their bid.
        """
        if self.truthful:
            found = self.offers[self.offers["outcome"] == Outcome.SERVED]
            found = found.assign(cost=found["bid"], reported_size=0, missing=0, misreported=False)
        else:
            found = self._read("clients").dropna(subset="paid")
            missing = found["reported_size"] - found["data_size"]
            found = found.assign(missing=missing, misreported=missing.ne(0) | (found["emd"] != found["reported_emd"]))
        paid, cost = found["paid"] / MICRO, found["cost"] / MICRO
        return found.assign(paid=paid, cost=cost, profit=paid - cost)

    def by_service(self, values: pd.Series) -> FloatArray:
        """Return [M] sums of a column of ``earnings``, or of one like it."""
        services = pd.Categorical(self.earnings["service"], categories=self.setting.services).codes
        return np.bincount(services, values, len(self.setting.services)).astype(np.float64)

    @property
    def income(self) -> FloatArray:
        """[C] money that each client earned in the run."""
        clients, paid = self.earnings["client"], self.earnings["paid"]
        return np.bincount(clients, paid, self.setting.clients).astype(np.float64)

    def _read(self, name: TableName) -> pd.DataFrame:
        found = read_table(self.directory, name)
        known = found["service"].isin(self.setting.services) & found["client"].between(0, self.setting.clients - 1)
        if not known.all():
            raise InputError(f"{self.directory.path}: {name}.csv names a service or a client that there is not")
        return found

    @cached_property
    def truthful(self) -> bool:
        """Whether the clients are: they bid what the work costs them, and report what they have."""
        return not CLIENTS.path(self.directory.path).exists()


def read(sources: Iterable[Path], damaged: Callable[[str], None] | None = None) -> list[RunResult]:
    """Read all complete runs below the sources, by scenario, sweep point (as the scenario lists them), policy and seed.

    Damaged runs are an error, or passed to ``damaged``; see ``complete_runs``.
    """
    results = read_runs(complete_runs(sources, damaged))
    seen: dict[tuple[str, str, int], RunResult] = {}
    for result in results:
        key = result.setting.folder.name, result.policy, result.seed
        if (other := seen.setdefault(key, result)) is not result:
            raise InputError(f"{result.directory.path} and {other.directory.path} are the same run; name one of them")
    return sorted(results, key=_order)


def _order(result: RunResult) -> tuple[str, int, str, str, int]:
    setting = result.setting
    return setting.name, setting.point, str(setting.folder), result.policy, result.seed


def read_runs(runs: Iterable[RunDirectory]) -> list[RunResult]:
    """Read complete runs, in their order."""
    runs = list(runs)
    settings = settings_of(runs)
    return [_result(run, settings[run.path.parent.parent]) for run in tracked(runs, "runs read")]


def mixed(runs: Sequence[RunResult]) -> list[str]:
    """Return one line for each scenario whose runs differ in arithmetic, and for each where they differ in version."""
    metas = [(run.setting.name, run.directory.meta()) for run in runs]
    return [
        *mixtures((name, arithmetic(meta)) for name, meta in metas),
        *mixed_versions((name, played_by(meta)) for name, meta in metas),
    ]


def remarks(runs: Sequence[RunResult]) -> list[str]:
    """Return one line for each scenario whose accuracies do not come from training."""
    settings = (members[0].setting for members in by_setting(runs).values())
    return [f"{setting.label}: {setting.backend.remark}" for setting in settings if setting.backend.remark]


def by_setting(runs: Iterable[RunResult]) -> dict[Path, list[RunResult]]:
    """Return the runs of each setting, by its folder, in order of appearance."""
    groups: dict[Path, list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[run.setting.folder].append(run)
    return groups


def by_policy(runs: Iterable[RunResult]) -> dict[str, list[RunResult]]:
    """Return the runs of each policy, by its label, in the order in which policies first appear."""
    groups: dict[str, list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[run.policy].append(run)
    return groups


def extended(rounds: pd.DataFrame, column: str, count: int, services: int) -> FloatArray:
    """Return [count, M] a column of rounds.csv, as it is in further rounds once all services have left."""
    values = rounds[column].to_numpy(dtype=np.float64).reshape(-1, services)
    after = values[-1:] if column in _HELD else np.zeros((1, services))
    return np.concatenate([values, np.repeat(after, count - len(values), axis=0)])


def _result(run: RunDirectory, setting: Setting) -> RunResult:
    meta, rounds, m = run.meta(), read_table(run, "rounds"), len(setting.services)
    played = len(rounds) // m
    if tuple(rounds["service"]) != setting.services * played or not 0 < played <= setting.rounds:
        raise InputError(f"{run.path}: rounds.csv does not have one row for each round and service")
    found = {column: extended(rounds, column, setting.rounds, m) for column in (*_HELD, *_MONEY, *_COUNTS)}
    for column in _MONEY:
        found[column] /= MICRO
    met = np.zeros((setting.rounds, m), dtype=np.bool_)
    met[:played] = (rounds["status"] == Status.REACHED).to_numpy().reshape(played, m)
    return RunResult(
        directory=run,
        setting=setting,
        policy=meta["policy"],
        policies=tuple(rounds["policy"].iloc[:m]),
        seed=meta["seed"],
        to_target=RoundsToTarget.first(met.T).since(setting.arrivals),
        reported=found.pop("test_accuracy"),
        **found,
    )
