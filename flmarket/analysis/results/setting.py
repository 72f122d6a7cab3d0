"""The setting that all runs of one scenario share, read from scenario.toml, and its name in tables."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import FloatArray, IntArray
from fl.backends import BACKENDS, Backend
from flmarket.core.text import printable
from scenarios.file.differences import ScenarioName, ScenarioValues, covers, names_among, without_policies
from scenarios.file.interventions import CORES, in_order
from scenarios.file.overrides import COUNT
from scenarios.file.schema import Scenario
from scenarios.logs.directory import RunDirectory
from scenarios.logs.identity import scenario_of


@dataclass(frozen=True)
class RunSetting:
    """The setting that all runs of one scenario (with one hash) share."""

    scenario: Scenario  # what is played
    # what names it in tables: its name with the values in ``differing``, and of a fork with its changes; with its hash
    # where these would not tell the scenarios that were read together apart
    label: str = ""
    folder: Path = Path()  # the directory of its runs, named after scenario and hash
    sweep: Mapping[str, Any] = field(default_factory=dict)  # values of the sweep point, by key
    point: int = 0  # the place of the sweep point in its scenario, from 0
    # the sweep's values, and those that distinguish it from others of its name, by key
    differing: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""  # what names its sweep: its name, with a hash where several scenarios of one name are swept

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def backend(self) -> Backend:
        return BACKENDS[self.scenario.training.backend]

    @cached_property
    def services(self) -> tuple[str, ...]:
        return tuple(service.name for service in self.scenario.services)

    @cached_property
    def targets(self) -> FloatArray:
        """[M] target accuracies."""
        return np.array([service.target_accuracy for service in self.scenario.services])

    @cached_property
    def reward_at_target(self) -> FloatArray:
        """[M] Omega^target, the highest reward."""
        rewards: FloatArray = np.array([service.reward_base for service in self.scenario.services]) ** self.targets
        return rewards

    @cached_property
    def cores(self) -> IntArray:
        """[N] the cores of all clients together, in each round."""
        clients = self.scenario.clients
        cores = np.full(self.scenario.rounds, clients.all_cores, dtype=np.int64)
        for change in in_order(self.scenario):
            if change.key == CORES:
                cores[change.round - 1 :] = clients.model_copy(update={"cores": change.value}).all_cores
        return cores


def settings_of(runs: Iterable[RunDirectory]) -> dict[Path, RunSetting]:
    """Return the settings of runs, by the folders of their scenarios, with labels that tell them apart."""
    settings: dict[Path, RunSetting] = {}
    values: dict[Path, ScenarioValues] = {}
    for run in runs:
        folder = run.folder
        if folder not in settings:
            meta, scenario = run.meta(), scenario_of(run)
            settings[folder] = RunSetting(scenario, scenario.name, folder, meta["sweep"], meta["point"], meta["sweep"])
            values[folder] = ScenarioValues.of(scenario, meta["policy"], meta["sweep"])
    return with_labels(_of_families(settings, values), values)


def rest_of(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return flattened values but for who plays, some keys, and what follows from these, as text that can be compared.

    The regime of each data set follows from what services train. Of services that are counted, the first stands for
    all.
    """
    first = next((key.split(".")[1] for key in values if key.startswith("services.")), "")
    covered = [*keys, "training.by_dataset", *(f"{key.rpartition('.')[0]}.options" for key in keys if "." in key)]
    rest = {key: value for key, value in without_policies(values).items() if not any(covers(it, key) for it in covered)}
    if COUNT in covered:
        rest = {key: at for key, at in rest.items() if not covers("services", key) or covers(f"services.{first}", key)}
    return repr(sorted(rest.items()))


def _of_families(settings: Mapping[Path, RunSetting], values: Mapping[Path, ScenarioValues]) -> dict[Path, RunSetting]:
    """Return settings with their families: the points of one sweep differ in nothing but the swept keys."""
    swept: dict[str, set[str]] = defaultdict(set)
    for setting in settings.values():
        swept[setting.name] |= setting.sweep.keys()
    alike: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for folder, setting in settings.items():
        if setting.sweep:
            alike[setting.name][rest_of(values[folder].values, swept[setting.name])].append(folder)
    names = {
        folder: name if len(families) == 1 else members[0].name
        for name, families in alike.items()
        for members in families.values()
        for folder in members
    }
    return {folder: replace(setting, family=names.get(folder, "")) for folder, setting in settings.items()}


def with_labels(settings: Mapping[Path, RunSetting], values: Mapping[Path, ScenarioValues]) -> dict[Path, RunSetting]:
    """Return settings with labels that tell those of one name apart: with a hash or path where nothing else does."""
    names = names_among(values)
    labelled = {
        folder: replace(
            setting,
            differing=names[folder].values,
            label=_label(setting.name if names[folder].alone else folder.name, names[folder]),
        )
        for folder, setting in settings.items()
    }
    counts = Counter(setting.label for setting in labelled.values())
    return {
        folder: replace(it, label=_label(str(folder), names[folder])) if counts[it.label] > 1 else it
        for folder, it in labelled.items()
    }


def _label(name: str, among: ScenarioName) -> str:
    label = f"{name} ({among.market})" if among.market else name
    return printable(": ".join([label, ", ".join(among.changes)] if among.changes else [label]))
