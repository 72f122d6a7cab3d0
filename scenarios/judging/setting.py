"""What all runs of one scenario share, read from scenario.toml; and what names it in tables."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import FloatArray, IntArray
from fl.backends import BACKENDS, REAL, Backend
from flmarket.core.errors import InputError, shortened
from flmarket.core.names import name_problem
from flmarket.core.printable import printable
from scenarios.file.interventions import intervention_words, market_of
from scenarios.file.schema import Intervention
from scenarios.judging.capacity import cores_by_round
from scenarios.logs.directory import SCENARIO, RunDirectory

_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one scenario (with one hash) share."""

    name: str  # the scenario's name
    # what names it in tables: its name with the sweep values, and with its hash where that alone would not tell the
    # scenarios that were read together apart; of a fork, with its changes
    label: str
    folder: Path  # the directory of its runs, named after scenario and hash
    sweep: Mapping[str, Any]  # values of the sweep point, by key
    point: int  # the place of the sweep point in its scenario, from 0
    backend: Backend  # what its accuracies come from
    split: bool  # whether they are measured on images that are held out
    rounds: int  # N
    clients: int  # C
    cores: IntArray  # [N] K in each round
    services: tuple[str, ...]  # [M] the services' names, in the scenario's order
    arrivals: IntArray  # [M] the first round of each
    targets: FloatArray  # [M] target accuracies
    reward_at_target: FloatArray  # [M] Omega^target, the highest reward
    shocks: tuple[Intervention, ...]  # what changes in the middle of its runs
    market: str  # what it shares with its forks, and with the run that it is a fork of


def folder_of(run: RunDirectory) -> Path:
    """Return the folder of all runs of a run's scenario."""
    return run.path.parent.parent


def settings_of(runs: Iterable[tuple[RunDirectory, Mapping[str, Any]]]) -> dict[Path, Setting]:
    """Return the settings of runs, by their folders, with labels that tell them apart."""
    found: dict[Path, Setting] = {}
    for run, meta in runs:
        if folder_of(run) not in found:
            found[folder_of(run)] = _setting(run, meta)
    return _told_apart(found)


def _told_apart(settings: Mapping[Path, Setting]) -> dict[Path, Setting]:
    """Give settings whose labels are the same longer ones.

    Forks are called by their changes; what is not told apart by them by its hash, and if need be by its whole path.
    """
    found = dict(settings)
    alike: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder, setting in settings.items():
        alike[setting.label, setting.market].append(folder)
    for folders in alike.values():
        for folder in folders:
            words = intervention_words(found[folder].shocks, [found[other].shocks for other in folders])
            if words:
                label = printable(f"{found[folder].label}: {', '.join(words)}")
                found[folder] = replace(found[folder], label=label)
    for name in (lambda folder: folder.name, str):
        counts = Counter(setting.label for setting in found.values())
        for folder, setting in found.items():
            if counts[setting.label] > 1:
                found[folder] = replace(setting, label=_label(name(folder), setting.sweep))
    return found


def _label(name: str, sweep: Mapping[str, Any]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in sweep.items())
    return printable(f"{name} ({values})" if values else name)


def _setting(run: RunDirectory, meta: Mapping[str, Any]) -> Setting:
    path = run.path / SCENARIO
    try:
        # Not through the schema: it was checked when it ran, and a thousand of them take a while.
        data = tomllib.loads(run.scenario_text())
        services = data["services"]
        check_names(data["name"], *(service["name"] for service in services))
        targets, bases = (_numbers(services, key) for key in ("target_accuracy", "reward_base"))
        return Setting(
            name=data["name"],
            label=_label(data["name"], meta["sweep"]),
            folder=folder_of(run),
            sweep=meta["sweep"],
            point=meta["point"],
            backend=(backend := BACKENDS[data.get("training", {}).get("backend", REAL.name)]),
            split=backend.trains and data.get("training", {}).get("validation", 0.0) > 0,
            rounds=_count(data["rounds"]),
            clients=_count(data["clients"]["count"]),
            cores=cores_by_round(data, _count(data["rounds"])),
            services=tuple(service["name"] for service in services),
            arrivals=np.array([_count(service.get("arrival", 1)) for service in services], dtype=np.int64),
            targets=targets,
            reward_at_target=bases**targets,
            shocks=tuple(Intervention.model_validate(change) for change in data.get("interventions", [])),
            market=market_of(data),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: is not the scenario of a run: {shortened(error)}") from error


def _count(value: Any) -> int:
    """Return a number of rounds or clients that a scenario can have; arrays are made of so many."""
    if type(value) is not int or not 1 <= value <= _MOST:
        raise ValueError(f"{value!r} is not a whole number from 1 to {_MOST}")
    return value


def _numbers(services: Sequence[Mapping[str, Any]], key: str) -> FloatArray:
    """Return [M] the services' values of a key; ValueError for one that no scenario may have, or without services."""
    if not services:
        raise ValueError("it has no services")
    found = np.array([service[key] for service in services], dtype=np.float64)
    if not (np.isfinite(found) & (found > 0) & (found <= 1e9)).all():
        raise ValueError(f"{key} is out of its range")
    return found


def check_names(*names: str) -> None:
    """Raise ValueError for the first that is not a name: reports and figures are made of them, and so are paths."""
    for name in names:
        if problem := name_problem(name):
            raise ValueError(f"{name[:60]!r}: {problem}")
