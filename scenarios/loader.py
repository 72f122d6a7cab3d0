"""Scenario files, read and checked: the only way to scenarios for the command line, the TUI, Python and tests."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from fl.backends import BACKENDS
from fl.training.regime import Regime
from flmarket.core.errors import InputError
from flmarket.core.files import BYTE_ORDER_MARK
from flmarket.core.names import unknown_plugin
from scenarios.builtin import builtin_names, builtin_path, builtin_text
from scenarios.file import overrides as options
from scenarios.file import sweeps
from scenarios.file.checks import Catalogue, examine, installed
from scenarios.file.differences import flattened
from scenarios.file.interventions import PLAYER, in_force, service_of
from scenarios.file.overrides import Overrides, put
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.problems import Mistake, Path, Problem, ScenarioError, key_text
from scenarios.file.regimes import KEYS, Chosen
from scenarios.file.schema import Scenario
from scenarios.file.sweeps import SweepPoint
from scenarios.file.toml import ScenarioSource, dumps, read_file, read_toml

__all__ = [
    "Problem",
    "ScenarioError",
    "SweepPoint",
    "builtin_names",
    "builtin_path",
    "builtin_text",
    "digest",
    "digest_of",
    "dumps",
    "forked",
    "hashed",
    "load",
    "parse",
    "points",
    "regimes_of",
    "settled",
    "with_policy",
    "with_values",
]


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
    text = text.removeprefix(BYTE_ORDER_MARK)
    data = read_toml(text, file)
    source = ScenarioSource(file, text, data)
    found = _flatten(source, data)
    source.options, problems = options.apply(data, overrides)
    known = catalogue or installed()
    scenario, wrong = examine(data, known)
    found += wrong
    if scenario and not found and not problems:
        found = _points(scenario, known)[1]
    if scenario and not found and not problems:
        return scenario.with_seats(_seats(data, source.options))
    raise ScenarioError(source.problems(found, problems))


def _seats(data: dict[str, Any], overrides: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return what overrides say of who plays, of all the paths that they set; see ``Scenario.seats``."""
    seats: dict[str, dict[str, Any]] = {}
    for path in overrides:
        if path[0] in ("services", "streams") and path[2:3] and path[2] in PLAYER:
            service, key = data[path[0]][path[1]], path[2]
            seat = seats.setdefault(service["name"], {})
            if key == "policy_options":
                options = service[key]
                seat.setdefault(key, {}).update({name: options[name] for name in path[3:4] or options})
            else:
                seat[key] = service[key]
    return seats


def _flatten(source: ScenarioSource, data: dict[str, Any]) -> list[Mistake]:
    """Give a sweep and ``[[runs]]`` dotted keys; return what is wrong with these."""
    found: list[Mistake] = []
    if isinstance(data.get("sweep"), Mapping):
        data["sweep"], source.moved, found = sweeps.flatten(data["sweep"])
    runs = data.get("runs", ())
    for i, run in enumerate(runs if isinstance(runs, list) else ()):
        if isinstance(run, Mapping):
            runs[i], moved, wrong = sweeps.flatten(run, ("runs", i))
            source.moved |= moved
            found += wrong
    return found


def points(scenario: Scenario) -> list[SweepPoint]:
    """Return every scenario of a sweep and of ``[[runs]]``, the last key changing fastest; of one without, itself.

    Raises:
        ScenarioError: a combination of values breaks the scenario. One that was loaded has been checked for that.
    """
    found, wrong = _points(scenario, installed())
    if wrong:
        data = scenario.model_dump(exclude_none=True)
        raise ScenarioError(
            Problem(f"scenario {scenario.name}", None, key_text(it.path, data), it.message) for it in wrong
        )
    return found


def _points(scenario: Scenario, catalogue: Catalogue) -> tuple[list[SweepPoint], list[Mistake]]:
    """Return the points, and what is wrong with them: that two that differ are the same run, too."""
    if not scenario.sweep and not scenario.runs:
        return [SweepPoint({}, scenario)], []
    found, wrong = sweeps.examine_points(scenario, catalogue)
    labels: dict[str, str] = {}
    for point in found if not wrong and len(found) > 1 else ():
        other = labels.setdefault(digest(point.scenario), point.label)
        if other != point.label:
            same = f"{other} and {point.label} are the same run; what they differ in has no effect here"
            return found, [Mistake(("runs",) if scenario.runs else ("sweep",), same)]
    return found, wrong


def regimes_of(scenarios: Iterable[Scenario]) -> list[Chosen]:
    """Return the regimes of all data sets that the services of some scenarios learn, each once."""
    found: list[Chosen] = []
    for scenario in scenarios:
        for name in dict.fromkeys(service.dataset for service in scenario.services):
            if (chosen := scenario.regime_of(name)) not in found:
                found.append(chosen)
    return found


def settled(scenario: Scenario) -> Scenario:
    """Return the scenario with the regime of each of its data sets written out: what a run directory keeps.

    A value that all data sets share, or the general default, goes into ``[training]``; what differs for one goes into
    its ``[training.by_dataset.NAME]``. A settled scenario trains the same whatever fits later versions come with.
    """
    training = scenario.training
    left_out = [key for key in KEYS if getattr(training, key) is None]
    if not left_out:
        return scenario
    regimes = {service.dataset: scenario.training_for(service.dataset) for service in scenario.services}
    data = training.model_dump(exclude_none=True)
    for key in left_out:
        values = {
            name: getattr(regime, key)
            for name, regime in regimes.items()
            if key not in data["by_dataset"].get(name, {})
        }
        shared = set(values.values())
        data[key] = shared.pop() if len(shared) == 1 else getattr(Regime(), key)
        for name, value in sorted(values.items()):
            if value != data[key]:
                data["by_dataset"].setdefault(name, {})[key] = value
    return scenario.model_copy(update={"training": type(training).model_validate(data)})


def digest(scenario: Scenario, extra: Mapping[str, str] | None = None) -> str:
    """Return the eight hexadecimal digits that distinguish runs of different scenarios; arguments as ``hashed``."""
    return digest_of(hashed(scenario, extra))


def digest_of(text: str) -> str:
    """Return the eight hexadecimal digits of what ``hashed`` returned."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def hashed(scenario: Scenario, extra: Mapping[str, str] | None = None) -> str:
    """Return what a run's hash is of: the scenario as JSON, a NUL, and what else decides the outcome as JSON.

    Take it before ``with_policy``, so that the policies compared on one scenario share its folder.

    Args:
        scenario: resolved: one point of its sweep, with ``--set`` and ``--rounds``.
        extra: what else decides the outcome, by name: digests of data and checkpoints.
    """
    resolved = settled(scenario)
    if not BACKENDS[scenario.training.backend].trains:  # then no images are held out, whatever the key says
        resolved = resolved.model_copy(update={"training": resolved.training.model_copy(update={"validation": 0.0})})
    return resolved.model_dump_json() + "\0" + json.dumps(extra or {}, sort_keys=True)


def with_policy(scenario: Scenario, policy: str) -> Scenario:
    """Return the scenario with one policy for every service.

    A service that had it already keeps its options and checkpoint; those that its file gives it for another policy are
    dropped. Overrides, with which the scenario was loaded, and the values of a sweep come after the policy.

    Args:
        scenario: one market's, or one that sweeps something else.
        policy: ``NAME``, with options, ``NAME(key=value)``, or with the file of what it has learned,
            ``NAME:CHECKPOINT``.

    Raises:
        ScenarioError: a service does not take its options or checkpoint, or the scenario sweeps
            policies.
        InputError: the policy is unknown, or no service would play it.
        PluginError: the package that registers the policy is broken.
    """
    option = f"policy {policy!r}"
    known, name = installed(), re.split("[(:]", policy)[0]
    if name not in known.names["policy"]:
        raise InputError(unknown_plugin("policy", name, known.names["policy"]))
    choice = PolicyChoice.parse(policy)

    def change(data: dict[str, Any]) -> None:
        choice.apply(data, scenario.seats)

    swept = [key for key in _varied(scenario) if key.startswith("services.") and key.rpartition(".")[2] == "policy"]
    changed = _changed(scenario, option, change, swept, replace(known, own_policies=True))
    if not any(map(choice.plays, changed.services)):
        raise InputError(f"{option}: no service would play it, as overrides come after it; leave one of them out")
    return changed


def with_values(scenario: Scenario, values: Mapping[str, object]) -> Scenario:
    """Return the scenario with other values, which options such as ``--rounds`` set, by key: all, then checked.

    Raises:
        ScenarioError: one is out of range, does not go with another key, or the scenario sweeps it.
    """
    if not values:
        return scenario
    flat = flattened(scenario.model_dump(exclude_none=True))
    swept = [key for key in _varied(scenario) if key in values]
    if not swept and all(flat.get(key) == value for key, value in values.items()):
        return scenario
    option = ", ".join(f"{key}={value}" for key, value in values.items())

    def change(data: dict[str, Any]) -> None:
        for key, value in values.items():
            put(data, tuple(key.split(".")), value)

    return _changed(scenario, option, change, swept, installed(), values)


def forked(
    scenario: Scenario,  # what the run plays
    round_: int,  # the round of the changes
    changes: Mapping[str, Any],  # new values by key, as in ``[[interventions]]``
    left: Collection[str] = (),  # the services that have left the market before the round
) -> tuple[Scenario | None, list[str]]:
    """Return a scenario with further interventions, or None and what is wrong with them."""
    data = scenario.model_dump(exclude_none=True)
    kept = [entry for entry in data["interventions"] if entry["round"] != round_ or entry["key"] not in changes]
    entries = [{"round": round_, "key": key, "value": _plain(value)} for key, value in changes.items()]
    data["interventions"] = sorted([*kept, *entries], key=lambda entry: entry["round"])
    changed, mistakes = examine(data, installed())
    if changed is None:
        return None, list(dict.fromkeys(_named(str(it.path[-1]), it.message) for it in mistakes))
    for key in changes:
        if problem := _useless(scenario, changed, key, round_, left):
            return None, [problem]
    return changed, []


def _named(what: str, message: str) -> str:
    """Return a problem, with what it is about where the message does not name it."""
    return message if what == "key" or message.startswith("unknown") else f"{what}: {message}"


def _plain(value: Any) -> Any:
    """Return a value as a scenario file can hold it, which has no word for None."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, Mapping) else value


def _useless(scenario: Scenario, changed: Scenario, key: str, round_: int, left: Collection[str]) -> str:
    """Return why a change would change nothing; an empty text if it would change something."""
    service = service_of(key)
    if service in left:
        return f"{service} has left the market before round {round_}; choose an earlier round"
    if len(left) == len(scenario.services):
        return f"all services have left the market before round {round_}; choose an earlier round"
    if in_force(scenario, key, round_) == in_force(changed, key, round_):
        return f"{key} has this value in round {round_} already; enter another one"
    return ""


def _varied(scenario: Scenario) -> list[str]:
    """Return the keys that differ between the scenario's points."""
    return list(dict.fromkeys([*scenario.sweep, *(key for run in scenario.runs for key in run)]))


def _changed(
    scenario: Scenario,
    option: str,
    change: Callable[[dict[str, Any]], object],
    swept: Sequence[str],
    catalogue: Catalogue,
    set_by_option: Collection[str] = (),  # the keys that the option names itself
) -> Scenario:
    """Return a scenario after a change to its data that a command line option makes."""
    if swept:
        raise ScenarioError([Problem(option, None, key, "is swept by this scenario") for key in swept])
    data = scenario.model_dump(exclude_none=True)
    change(data)
    result, found = examine(data, catalogue)
    if result is None:
        # What is wrong with the same value of each service is reported once.
        keys = {it.message: key_text(it.path, data) for it in reversed(found)}
        raise ScenarioError(
            Problem(option, None, "" if keys[text] in set_by_option else keys[text], text)
            for text in dict.fromkeys(it.message for it in found)
        )
    return result.with_seats(scenario.seats)
