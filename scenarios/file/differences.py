"""The values in which scenarios of one name differ, which name them in tables, in reports and on the screens."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeVar

from scenarios.file.toml_text import value_text

Key = TypeVar("Key", bound=Hashable)

MOST = 3  # values that a name holds; scenarios that differ in more are named by their hashes

_APART = frozenset({"name", "description", "interventions"})
_POLICY = frozenset({"policy", "policy_options", "checkpoint"})


def flattened(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's values by the keys that ``--set`` takes, without its name, description and interventions."""
    return {key: value for key, value in _values(scenario, "") if key not in _APART}


def _values(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key in ("services", "groups") and isinstance(value, list | tuple):
            for table in value:
                if isinstance(table, Mapping):
                    yield from _values(table, f"{above}{key}.{table.get('name')}.")
        elif isinstance(value, Mapping):
            yield from _values(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def covers(key: str, flat: str) -> bool:
    """Return whether a dotted key is, or is above, one of ``flattened``; ``services.*.budget`` is those of all."""
    if key.startswith("services.*."):
        return flat.startswith("services.") and flat.endswith(key.removeprefix("services.*"))
    return flat == key or flat.startswith(f"{key}.")


def without_policies(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return flattened values without those that say who plays."""
    return {key: value for key, value in values.items() if not _is_policy(key)}


def distinguishing(scenarios: Mapping[Key, Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """Return for each scenario, flattened, the values in which it differs from others; nothing if they are too many.

    Policies are among them only where nothing else differs: runs are named after theirs.
    """
    keys = dict.fromkeys(key for values in scenarios.values() for key in values)
    differing = [key for key in keys if len({repr(values.get(key)) for values in scenarios.values()}) > 1]
    differing = [key for key in differing if not _is_policy(key)] or differing
    if len(differing) > MOST:
        return {}
    return {
        place: {key: values[key] for key in differing if values.get(key) is not None}
        for place, values in scenarios.items()
    }


def alike(scenarios: Mapping[Key, Mapping[str, Any]]) -> Iterator[list[Key]]:
    """Yield groups of scenarios, flattened, that have the same values."""
    found: dict[str, list[Key]] = defaultdict(list)
    for place, values in scenarios.items():
        found[repr(sorted(values.items()))].append(place)
    yield from found.values()


def values_text(values: Mapping[str, Any]) -> str:
    """Return values in words, as ``--set`` takes them: ``clients.cores=2, services.mnist.budget=10``."""
    return ", ".join(f"{key}={_text(value)}" for key, value in values.items())


def distinguished(scenarios: Mapping[Key, Mapping[str, Any]]) -> dict[Key, str]:
    """Return ``distinguishing`` in words, for the scenarios that these words name alone."""
    found = {place: values_text(values) for place, values in distinguishing(scenarios).items()}
    counts = Counter(found.values())
    return {place: words for place, words in found.items() if words and counts[words] == 1}


def _is_policy(key: str) -> bool:
    return key.rpartition(".")[2] in _POLICY or ".policy_options." in key


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # as a file has it
    return value if isinstance(value, str) else value_text(value)
