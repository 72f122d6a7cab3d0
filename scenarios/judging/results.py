"""Results of complete runs, read from their logs: the numbers behind reports and figures.

A service that left early counts until the last round of its scenario, with accuracy and reward held and nothing spent.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from des.observation import Status
from fl.arrays import FloatArray
from flmarket.core.errors import InputError
from flmarket.core.names import folder_problem
from flmarket.core.tracking import tracked
from learning.time_to_target import RoundsToTarget
from scenarios.judging.earnings import Earnings, read_earnings
from scenarios.judging.identity import recorded
from scenarios.judging.setting import Setting, check_names, folder_of, settings_of
from scenarios.judging.tables import read_table
from scenarios.logs.arithmetic import arithmetic, mixtures
from scenarios.logs.columns import CLIENTS
from scenarios.logs.directory import META, RunDirectory
from scenarios.logs.finding import complete_runs
from scenarios.logs.versions import mixed_versions, played_by

_QUANTITIES = ("accuracy", "test_accuracy", "reward", "offered", "spent", "wanted", "served", "refused")


@dataclass(frozen=True)
class RunResult:
    """One run. Arrays have the axes [round, service], over all N rounds."""

    directory: RunDirectory  # the directory of its logs
    setting: Setting  # what it shares with other runs
    policy: str  # the run's label
    policies: tuple[str, ...]  # [M] the services' policies
    seed: int  # the run's seed
    kernels: Mapping[str, str]  # the arithmetic in which each service's models were trained; empty where none were
    version: str  # the version of flmarket that played it
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
    def earnings(self) -> Earnings:
        """What clients earned, and what it cost them. Read from the logs when it is first asked for."""
        return read_earnings(self.directory, self.setting.services, self.setting.clients)

    @property
    def income(self) -> FloatArray:
        """[C] money that each client earned in the run. Errors as in ``earnings``."""
        return np.bincount(self.earnings.client, self.earnings.paid, self.setting.clients).astype(np.float64)

    @property
    def profit(self) -> FloatArray:
        """[M] what the clients of each service were paid above their costs. Errors as in ``earnings``."""
        return np.bincount(self.earnings.service, self.earnings.profit, len(self.setting.services)).astype(np.float64)

    @cached_property
    def truthful(self) -> bool:
        """Whether the clients are: they bid what the work costs them, and report what they have."""
        return not CLIENTS.path(self.directory.path).exists()


def read(sources: Iterable[Path], damaged: Callable[[str], None] | None = None) -> list[RunResult]:
    """Read all complete runs below the sources, by scenario, sweep point (as the scenario lists them), policy and seed.

    Damaged runs are an error, or told to ``damaged``; see ``complete_runs``.
    """
    results = _distinct(read_runs(complete_runs(sources, damaged)))
    return sorted(results, key=_order)


def _order(result: RunResult) -> tuple[str, int, str, str, int]:
    setting = result.setting
    return setting.name, setting.point, str(setting.folder), result.policy, result.seed


def read_runs(runs: Iterable[RunDirectory]) -> list[RunResult]:
    """Read complete runs, in their order."""
    found = [(run, recorded(run)) for run in runs]
    settings = settings_of(found)
    results = []
    for run, meta in tracked(found, "runs read"):
        try:
            policy, seed = str(meta["policy"]), int(meta["seed"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{run.path / META}: has no usable {error}; run again with --fresh") from error
        if problem := folder_problem(policy):
            raise InputError(f"{run.path / META}: policy: {problem}; run again with --fresh")
        results.append(_result(run, settings[folder_of(run)], policy, seed, meta))
    return results


def mixed(runs: Sequence[RunResult]) -> list[str]:
    """Return one line for each scenario whose runs differ in arithmetic, and for each where they differ in version."""
    arithmetics = mixtures((run.setting.name, run.kernels) for run in runs)
    return arithmetics + mixed_versions((run.setting.name, run.version) for run in runs)


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


def _result(run: RunDirectory, setting: Setting, policy: str, seed: int, meta: Mapping[str, Any]) -> RunResult:
    rounds = read_table(run, "rounds", ["service", "policy", "status", *_QUANTITIES])
    m = len(setting.services)
    played = len(rounds) // m
    if tuple(rounds["service"]) != setting.services * played or not 0 < played <= setting.rounds:
        raise InputError(f"{run.path}: rounds.csv does not have one row for each round and service")

    policies = tuple(rounds["policy"].iloc[:m])
    try:
        check_names(*policies)
    except (TypeError, ValueError) as error:
        raise InputError(f"{run.path}: rounds.csv: {error}") from error

    def extended(column: str, after: float) -> FloatArray:
        """Return [N, M]: a column, and after the last round that was played its last values times ``after``."""
        values = rounds[column].to_numpy(dtype=np.float64).reshape(played, m)
        if not np.isfinite(values).all():
            raise InputError(f"{run.path}: rounds.csv: {column} is not a finite number in every row")
        return np.concatenate([values, np.repeat(values[-1:] * after, setting.rounds - played, axis=0)])

    met = np.zeros((setting.rounds, m), dtype=np.bool_)
    met[:played] = (rounds["status"] == Status.REACHED).to_numpy().reshape(played, m)
    held = ("accuracy", "test_accuracy", "reward")
    found = {name: extended(name, 1.0 if name in held else 0.0) for name in _QUANTITIES}
    return RunResult(
        directory=run,
        setting=setting,
        policy=policy,
        policies=policies,
        seed=seed,
        kernels=arithmetic(meta),
        version=played_by(meta),
        to_target=RoundsToTarget.first(met.T).since(setting.arrivals),
        reported=found.pop("test_accuracy"),
        **found,
    )


def _distinct(results: Sequence[RunResult]) -> Sequence[RunResult]:
    seen: dict[tuple[str, str, int], RunResult] = {}
    for result in results:
        key = result.setting.folder.name, result.policy, result.seed
        if (other := seen.setdefault(key, result)) is not result:
            raise InputError(f"{result.directory.path} and {other.directory.path} are the same run; name one of them")
    return results
