"""A scenario with changes from a round on: what is played by a fork of a run."""

from collections.abc import Collection, Mapping
from typing import Any

from des.money import to_micro
from scenarios.file.checks import examine, installed
from scenarios.file.interventions import CORES, MECHANISM, PLAYER, at, offline_at, service_of
from scenarios.file.schema import Scenario


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
    changed, found = examine(data, installed())
    if changed is None:
        return None, list(dict.fromkeys(_sentence(str(finding.path[-1]), finding.message) for finding in found))
    for key in changes:
        if problem := _useless(scenario, changed, key, round_, left):
            return None, [problem]
    return changed, []


def _sentence(what: str, message: str) -> str:
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


def in_force(scenario: Scenario, key: str, round_: int) -> Any:
    """Return what a round is played with: the value of a key that interventions can change."""
    then, service = at(scenario, round_), service_of(key)
    if key == MECHANISM:
        return then.market.mechanism, then.market.options
    if key == CORES:
        return then.clients.cores
    if service is None:
        return offline_at(scenario, round_)
    if key.endswith(".budget"):
        return to_micro(then.service(service).budget)
    return [getattr(then.service(service), part) for part in PLAYER]
