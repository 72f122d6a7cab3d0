"""The setting that all runs of one scenario share, read from scenario.toml, and its name in tables."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from fl.arrays import FloatArray, IntArray
from fl.backends import BACKENDS, Backend
from flmarket.core.errors import InputError, shortened
from flmarket.core.printable import printable
from scenarios.file.interventions import intervention_words, market_of
from scenarios.file.schema import Scenario
from scenarios.logs.directory import SCENARIO, RunDirectory


@dataclass(frozen=True)
class Setting:
    """The setting that all runs of one scenario (with one hash) share."""

    scenario: Scenario  # what is played
    # what names it in tables: its name with the sweep values, and with its hash where that alone would not tell the
    # scenarios that were read together apart; of a fork, with its changes
    label: str
    folder: Path  # the directory of its runs, named after scenario and hash
    sweep: Mapping[str, Any]  # values of the sweep point, by key
    point: int  # the place of the sweep point in its scenario, from 0

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def rounds(self) -> int:
        return self.scenario.rounds

    @property
    def clients(self) -> int:
        return self.scenario.clients.count

    @property
    def backend(self) -> Backend:
        """The backend that its accuracies come from."""
        return BACKENDS[self.scenario.training.backend]

    @property
    def split(self) -> bool:
        """Whether targets and rewards go by images that are held out."""
        return self.scenario.split

    @cached_property
    def services(self) -> tuple[str, ...]:
        return tuple(service.name for service in self.scenario.services)

    @cached_property
    def arrivals(self) -> IntArray:
        """[M] the first round of each service."""
        return np.array([service.arrival for service in self.scenario.services], dtype=np.int64)

    @cached_property
    def targets(self) -> FloatArray:
        """[M] target accuracies."""
        return np.array([service.target_accuracy for service in self.scenario.services])

    @cached_property
    def reward_at_target(self) -> FloatArray:
        """[M] Omega^target, the highest reward."""
        found: FloatArray = np.array([service.reward_base for service in self.scenario.services]) ** self.targets
        return found

    @cached_property
    def cores(self) -> IntArray:
        """[N] K in each round."""
        found = np.full(self.rounds, self.scenario.clients.cores, dtype=np.int64)
        for change in sorted(self.scenario.interventions, key=lambda change: change.round):
            if change.key == "clients.cores":
                found[change.round - 1 :] = change.value
        return found


def settings_of(runs: Iterable[RunDirectory]) -> dict[Path, Setting]:
    """Return the settings of runs, by the folders of their scenarios, with labels that tell them apart."""
    found: dict[Path, Setting] = {}
    for run in runs:
        folder = run.path.parent.parent
        if folder not in found:
            meta, scenario = run.meta(), scenario_of(run)
            found[folder] = Setting(
                scenario, _label(scenario.name, meta["sweep"]), folder, meta["sweep"], meta["point"]
            )
    return _told_apart(found)


def scenario_of(run: RunDirectory) -> Scenario:
    """Return the scenario of a run that was played: its names need not be known here."""
    try:
        return Scenario.model_validate(tomllib.loads(run.scenario_text()))
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"{run.path / SCENARIO}: is not the scenario of a run: {problem}") from error
    except ValueError as error:
        raise InputError(f"{run.path / SCENARIO}: is not the scenario of a run: {shortened(error)}") from error


def _told_apart(settings: Mapping[Path, Setting]) -> dict[Path, Setting]:
    """Give settings whose labels are the same longer ones.

    Forks are named by their changes; those that share a name get their hash, and if need be their whole path.
    """
    found = dict(settings)
    alike: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder, setting in settings.items():
        alike[setting.label, market_of(setting.scenario.model_dump())].append(folder)
    for folders in alike.values():
        for folder in folders:
            changes = [found[other].scenario.interventions for other in folders]
            if words := intervention_words(found[folder].scenario.interventions, changes):
                found[folder] = replace(found[folder], label=printable(f"{found[folder].label}: {', '.join(words)}"))
    for name in (lambda folder: folder.name, str):
        counts = Counter(setting.label for setting in found.values())
        for folder, setting in found.items():
            if counts[setting.label] > 1:
                found[folder] = replace(setting, label=_label(name(folder), setting.sweep))
    return found


def _label(name: str, sweep: Mapping[str, Any]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in sweep.items())
    return printable(f"{name} ({values})" if values else name)
