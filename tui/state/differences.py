"""The values in which markets of one name differ, such as the points of a sweep."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from scenarios.file.toml_text import value_text

Key = TypeVar("Key", bound=Hashable)

MOST = 3  # values that a name holds; markets that differ in more are named by their hashes

_APART = frozenset({"name", "description", "interventions"})
_POLICY = frozenset({"policy", "policy_options", "checkpoint"})


def flattened(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's values by dotted keys, services by their names; without names and shocks."""
    return {key: value for key, value in _values(scenario, "") if key not in _APART}


def _values(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == "services" and isinstance(value, list | tuple):
            for service in value:
                if isinstance(service, Mapping):
                    yield from _values(service, f"{above}services.{service.get('name')}.")
        elif isinstance(value, Mapping):
            yield from _values(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def told_apart(markets: Mapping[Key, Mapping[str, Any]]) -> dict[Key, str]:
    """Return for each market the values that distinguish it: ``budget=6``; none where that takes too many.

    Policies are named only where nothing else distinguishes two markets: runs are named after theirs.
    """
    keys = dict.fromkeys(key for market in markets.values() for key in market)
    differing = [key for key in keys if len({repr(market.get(key)) for market in markets.values()}) > 1]
    for chosen in ([key for key in differing if not _is_policy(key)], differing):
        found = _named(markets, chosen) if 0 < len(chosen) <= MOST else {}
        if found and len(set(found.values())) == len(found) and all(found.values()):
            return found
    return {}


def _named(markets: Mapping[Key, Mapping[str, Any]], keys: Sequence[str]) -> dict[Key, str]:
    """Return the values of some keys, which are as short as they can be: the last word, if no other key ends so."""
    ends = Counter(key.rpartition(".")[2] for key in keys)
    short = {key: end if ends[end := key.rpartition(".")[2]] == 1 else key.removeprefix("services.") for key in keys}
    return {
        place: ", ".join(f"{short[key]}={_text(market[key])}" for key in keys if market.get(key) is not None)
        for place, market in markets.items()
    }


def _is_policy(key: str) -> bool:
    return key.rpartition(".")[2] in _POLICY or ".policy_options." in key


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # as a file has it
    return value if isinstance(value, str) else value_text(value)
