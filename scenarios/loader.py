"""Scenario files, read and checked: the only way to scenarios for the command line, the TUI, Python and tests."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from fl.backends import BACKENDS
from flmarket.core.errors import InputError
from flmarket.core.names import unknown, unknown_plugin
from scenarios.file import overrides as options
from scenarios.file import sweeps
from scenarios.file.checks import Catalogue, installed
from scenarios.file.overrides import Overrides
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.problems import Finding, Problem, ScenarioError, key_text
from scenarios.file.schema import Scenario
from scenarios.file.settled import settled
from scenarios.file.source import MOST_PROBLEMS, Source, read_file, read_toml
from scenarios.file.sweeps import SweepPoint
from scenarios.file.toml_text import dumps
from scenarios.file.validation import examine

__all__ = [
    "Problem",
    "ScenarioError",
    "SweepPoint",
    "builtin_names",
    "builtin_path",
    "builtin_text",
    "digest",
    "dumps",
    "load",
    "parse",
    "points",
    "settled",
    "with_policy",
    "with_rounds",
]

_BUILTIN = FilePath(__file__).with_name("builtin")


def builtin_names() -> list[str]:
    """Return the names of the scenarios that come with flmarket."""
    return sorted(path.stem for path in _BUILTIN.glob("*.toml"))


def builtin_path(name: str) -> FilePath:
    """Return the file of a built-in scenario.

    Raises:
        InputError: it is unknown; suggests the nearest name.
    """
    known = builtin_names()
    if name not in known:
        raise InputError(unknown("built-in scenario", name, known))
    return _BUILTIN / f"{name}.toml"


def builtin_text(name: str) -> str:
    """Return the text of a built-in scenario. Errors as in ``builtin_path``."""
    return builtin_path(name).read_text(encoding="utf-8")


def load(source: str | FilePath, overrides: Overrides = (), *, catalogue: Catalogue | None = None) -> Scenario:
    """Read and check a scenario.

    Args:
        source: a file, or the name of a built-in scenario (which ``./name`` is not).
        overrides: values to change, as ``--set`` gives them, or by dotted key.
        catalogue: the data sets and policies that it may name; those installed when not given.

    Raises:
        ScenarioError: it cannot be read, or something is wrong with it, its sweep included.
    """
    path = builtin_path(source) if isinstance(source, str) and source in builtin_names() else FilePath(source)
    return parse(read_file(path, builtin_names()), str(path), overrides, catalogue=catalogue)


def parse(
    text: str, file: str = "scenario", overrides: Overrides = (), *, catalogue: Catalogue | None = None
) -> Scenario:
    """Read and check the text of a scenario. As ``load``; ``file`` is its name in messages about problems."""
    data = read_toml(text, file)
    source = Source(file, text, data)
    found: list[Finding] = []
    if isinstance(data.get("sweep"), Mapping):
        data["sweep"], source.moved, found = sweeps.flatten(data["sweep"])
    if isinstance(data.get("runs"), list):
        for i, run in enumerate(data["runs"]):
            if isinstance(run, Mapping):
                data["runs"][i], moved, wrong = sweeps.flatten(run, ("runs", i))
                source.moved = {**source.moved, **moved}
                found += wrong
    source.options, problems = options.apply(data, overrides)

    known = catalogue or installed()
    scenario, wrong = examine(data, known)
    found += [*wrong, *sweeps.check_sweep(data), *sweeps.check_runs(data)]
    if scenario and not found and not problems:
        found += sweeps.check_points(scenario, known)
    if scenario and not found and not problems:
        return scenario.with_explicit({key_text(path, data): option for path, option in source.options.items()})
    raise ScenarioError(source.problems(found, problems))


def points(scenario: Scenario, *, catalogue: Catalogue | None = None) -> list[SweepPoint]:
    """Return every scenario of a sweep and of ``[[runs]]``, the last key changing fastest; of one without, itself.

    Raises:
        ScenarioError: a combination of values breaks the scenario. One that was loaded has been checked for that.
    """
    if not scenario.sweep and not scenario.runs:
        return [SweepPoint({}, scenario)]
    known = catalogue or installed()
    data = scenario.model_dump(exclude_none=True)
    if wrong := [*sweeps.check_sweep(data), *sweeps.check_runs(data)] or [*sweeps.check_points(scenario, known)]:
        place = f"scenario {scenario.name}"
        raise ScenarioError(Problem(place, None, key_text(f.path, data), f.message) for f in wrong[:MOST_PROBLEMS])
    found = []
    for values, point, _ in sweeps.grid(scenario, known):
        if point:
            swept = {key: f"the sweep's value {value!r}" for key, value in values.items()}
            found.append(SweepPoint(values, point.with_explicit({**scenario.explicit, **swept})))
    return found


def digest(scenario: Scenario, extra: Mapping[str, str] | None = None) -> str:
    """Return the eight hexadecimal digits that distinguish runs of different scenarios.

    Take it before ``with_policy``, so that the policies compared on one scenario share its folder.

    Args:
        scenario: resolved: one point of its sweep, with ``--set`` and ``--rounds``.
        extra: what else decides the outcome, by name: digests of data and checkpoints.
    """
    resolved = settled(scenario)
    if not BACKENDS[scenario.training.backend].trains:  # then no images are held out, whatever the key says
        resolved = resolved.model_copy(update={"training": resolved.training.model_copy(update={"validation": 0.0})})
    content = resolved.model_dump_json() + "\0" + json.dumps(extra or {}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def with_policy(scenario: Scenario, policy: str, *, catalogue: Catalogue | None = None) -> Scenario:
    """Return the scenario with one policy for every service.

    A service that had it already keeps its options and checkpoint. Those that its file gives it for another policy are
    dropped; those that the user gave it explicitly are kept.

    Args:
        scenario: one market's, or one that sweeps something else.
        policy: ``NAME``, or ``NAME:CHECKPOINT`` with the file of what the policy has learned.
        catalogue: the policies that there are; those installed when not given.

    Raises:
        ScenarioError: the policy is unknown, it takes no checkpoint, an explicit wish conflicts with it, or the
            scenario sweeps what it would replace.
        PluginError: the package that registers the policy is broken.
    """
    option = f"--policy {policy}"
    known = (catalogue or installed()).policies
    name = policy.partition(":")[0]
    if name not in known:
        raise ScenarioError([Problem(option, None, "", unknown_plugin("policy", name, known))])
    choice = PolicyChoice.parse(policy)
    conflicts: list[tuple[str, str]] = []

    def change(data: dict[str, Any]) -> None:
        conflicts.extend(choice.apply(data, scenario.explicit))

    swept = [key for key in _varied(scenario) if key.startswith("services.") and key.rpartition(".")[2] == "policy"]
    changed = _changed(scenario, option, change, swept, catalogue)
    if conflicts:
        raise ScenarioError(Problem(option, None, key, message) for key, message in conflicts)
    return changed


def with_rounds(scenario: Scenario, rounds: int, *, catalogue: Catalogue | None = None) -> Scenario:
    """Return the scenario with another number of rounds.

    Raises:
        ScenarioError: the number is out of range, or the scenario sweeps it.
    """
    swept = [key for key in _varied(scenario) if key == "rounds"]
    return _changed(scenario, f"--rounds {rounds}", lambda data: data.update(rounds=rounds), swept, catalogue)


def _varied(scenario: Scenario) -> list[str]:
    """Return the keys that differ between the scenario's points."""
    return list(dict.fromkeys([*scenario.sweep, *(key for run in scenario.runs for key in run)]))


def _changed(
    scenario: Scenario,
    option: str,
    change: Callable[[dict[str, Any]], None],
    swept: Sequence[str],
    catalogue: Catalogue | None,
) -> Scenario:
    """Return a scenario after a change to its data that a command line option makes."""
    if swept:
        raise ScenarioError([Problem(option, None, key, "is swept by this scenario") for key in swept])
    data = scenario.model_dump(exclude_none=True)
    change(data)
    result, found = examine(data, catalogue or installed())
    if result is None:
        # A wrong name would be reported once for each service.
        raise ScenarioError(Problem(option, None, "", text) for text in dict.fromkeys(f.message for f in found))
    return result.with_explicit(scenario.explicit)
