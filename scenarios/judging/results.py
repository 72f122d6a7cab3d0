"""What complete runs came to, read from their logs: the numbers behind reports and figures.

A service that left early counts to the last round of its scenario with its accuracy and reward held and nothing spent.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fl.arrays import BoolArray, FloatArray
from fl.errors import InputError
from scenarios.logs.directory import SCENARIO, RunDirectory, State, find_runs

_COLUMNS = ["round", "service", "policy", "status", "accuracy", "reward", "spent", "wanted", "served", "refused"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one scenario (with one hash) share.

    Attributes:
        name: of the scenario, with its hash where names alone would not tell scenarios apart.
        folder: the directory of its runs.
        sweep: values of the sweep point, by key.
        rounds: N.
        clients, cores: C and K.
        services: names, in the scenario's order.
        targets: [M] target accuracies.
        reward_at_target: [M] Omega^target, the highest reward.
    """

    name: str
    folder: Path
    sweep: Mapping[str, Any]
    rounds: int
    clients: int
    cores: int
    services: tuple[str, ...]
    targets: FloatArray
    reward_at_target: FloatArray

    @property
    def label(self) -> str:
        """What tables call it."""
        values = ", ".join(f"{key}={value}" for key, value in self.sweep.items())
        return f"{self.name} ({values})" if values else self.name


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run. Arrays have the axes [round, service], over all N rounds.

    Attributes:
        directory: where its logs are.
        setting: what it shares with others.
        policy: the run's label.
        policies: [M] of the services.
        seed: of the run.
        accuracy: after each round, in [0, 1].
        reward: as in the paper, Omega^accuracy.
        spent, wanted, served, refused: money and offers in each round.
        reached: [M] the round in which the target was met, N + 1 where it was not.
        income: [C] money that each client earned in the run.
    """

    directory: RunDirectory
    setting: Setting
    policy: str
    policies: tuple[str, ...]
    seed: int
    accuracy: FloatArray
    reward: FloatArray
    spent: FloatArray
    wanted: FloatArray
    served: FloatArray
    refused: FloatArray
    reached: FloatArray
    income: FloatArray

    @property
    def met(self) -> BoolArray:
        """[M] whether each target was met."""
        return self.reached <= self.setting.rounds


def read(sources: Iterable[Path]) -> list[RunResult]:
    """Read all complete runs below the sources, by scenario, policy and seed.

    Raises:
        InputError: there is no complete run, or a log is not what it should be.
    """
    sources = list(sources)
    runs = [run for run in find_runs(sources) if run.state is State.COMPLETE]
    if not runs:
        raise InputError(f"no complete run in {', '.join(map(str, sources))}")
    settings: dict[Path, Setting] = {}
    results = []
    for run in runs:
        meta, folder = run.meta(), run.path.parent.parent
        if folder not in settings:
            settings[folder] = _setting(run, meta)
        try:
            results.append(_result(run, settings[folder], str(meta["policy"]), int(meta["seed"])))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{run.path}: the logs can't be read: {error}") from error
    return sorted(_distinct(results), key=lambda result: (str(result.setting.folder), result.policy, result.seed))


def _setting(run: RunDirectory, meta: Mapping[str, Any]) -> Setting:
    path = run.path / SCENARIO
    try:
        # Not through the schema: it was checked when it ran, and a thousand of them take a while.
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        services = data["services"]
        targets = np.array([service["target_accuracy"] for service in services])
        return Setting(
            name=data["name"],
            folder=run.path.parent.parent,
            sweep=meta.get("sweep", {}),
            rounds=data["rounds"],
            clients=data["clients"]["count"],
            cores=data["clients"]["cores"],
            services=tuple(service["name"] for service in services),
            targets=targets,
            reward_at_target=np.array([service["reward_base"] for service in services]) ** targets,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a run's scenario: {error}") from error


def _result(run: RunDirectory, setting: Setting, policy: str, seed: int) -> RunResult:
    rounds = pd.read_csv(run.path / "rounds.csv", usecols=_COLUMNS, engine="c")
    m = len(setting.services)
    played = len(rounds) // m
    if tuple(rounds["service"]) != setting.services * played or not 0 < played <= setting.rounds:
        raise ValueError("rounds.csv does not have one row for each round and service")

    def held(column: str, after: float) -> FloatArray:
        values = rounds[column].to_numpy(dtype=np.float64).reshape(played, m)
        return np.concatenate([values, np.repeat(values[-1:] * after, setting.rounds - played, axis=0)])

    status = rounds["status"].to_numpy().reshape(played, m) == "reached"
    reached = np.where(status.any(axis=0), status.argmax(axis=0) + 1, setting.rounds + 1).astype(np.float64)
    offers = pd.read_csv(run.path / "offers.csv", usecols=["client", "payment", "outcome"], engine="c")
    paid = offers[offers["outcome"] == "served"]
    income = np.bincount(paid["client"].to_numpy(dtype=np.int64), paid["payment"].to_numpy(), setting.clients)
    return RunResult(
        directory=run,
        setting=setting,
        policy=policy,
        policies=tuple(rounds["policy"].iloc[:m]),
        seed=seed,
        accuracy=held("accuracy", 1.0),
        reward=held("reward", 1.0),
        spent=held("spent", 0.0),
        wanted=held("wanted", 0.0),
        served=held("served", 0.0),
        refused=held("refused", 0.0),
        reached=reached,
        income=np.asarray(income, dtype=np.float64),
    )


def _distinct(results: Sequence[RunResult]) -> Sequence[RunResult]:
    """Refuse two copies of one run: they would count as two."""
    seen: dict[tuple[str, str, int], RunResult] = {}
    for result in results:
        key = result.setting.folder.name, result.policy, result.seed
        if (other := seen.setdefault(key, result)) is not result:
            raise InputError(f"{result.directory.path} and {other.directory.path} are the same run; name one of them")
    return results
