"""What a scenario is called among others: by the values in which it differs, and a fork by its interventions.

The one place that decides this, for batches, tables, reports and screens.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple, Self, TypeVar

from learning.policy import AS_CONFIGURED
from scenarios.file.schema import Intervention, Scenario
from scenarios.file.toml import value_text

Key = TypeVar("Key", bound=Hashable)

MOST = 3  # values that a name holds
LONGEST = 6  # values of a list that a name shows in full

_APART = frozenset({"name", "description", "interventions"})
_POLICY = frozenset({"policy", "policy_options", "checkpoint"})


class ScenarioValues(NamedTuple):
    """What tells a scenario from others of its name."""

    name: str
    values: Mapping[str, Any]  # ``flattened``
    interventions: Sequence[Intervention] = ()
    sweep: Mapping[str, Any] = {}  # values of its sweep point by key, which name it even if no other point is there

    @classmethod
    def of(cls, scenario: Scenario, policy: str, sweep: Mapping[str, Any] = {}) -> Self:
        values = naming_values(flattened(scenario.model_dump(mode="json")), policy)
        return cls(scenario.name, values, scenario.interventions, sweep)


@dataclass(frozen=True, slots=True)
class ScenarioName:
    """What a scenario is called besides its name, among those that it is shown with."""

    values: Mapping[str, Any]  # the sweep's, and those that distinguish it, by key
    changes: tuple[str, ...]  # the interventions that not all have that are like it in all else, in words
    others: tuple[str, ...] = ()  # the keys of lists of which it has tables that not all have: ``clients.groups``
    alone: bool = True  # whether this tells it from all others of its name; otherwise its hash must, beside this

    @property
    def market(self) -> str:
        """What its market has that the others' do not have, but for interventions, in words."""
        values = [values_text(self.values)] if self.values else []
        return ", ".join([*values, *(f"other {key}" for key in self.others)])

    @property
    def text(self) -> str:
        """All this in words; empty for one that has nothing which the others do not have."""
        return ", ".join(filter(None, [self.market, *self.changes]))

    @property
    def rank(self) -> tuple[object, ...]:
        """What scenarios of one name are sorted by: the values, numbers by their size, and forks behind originals."""
        values = [(key, *_sorted_as(value)) for key, value in self.values.items()]
        return self.others, values, len(self.changes), self.changes


def names_among(scenarios: Mapping[Key, ScenarioValues]) -> dict[Key, ScenarioName]:
    """Return what each of these scenarios is called among the others."""
    points: dict[tuple[str, str], dict[Key, ScenarioValues]] = defaultdict(dict)
    for key, scenario in scenarios.items():
        points[scenario.name, values_text(scenario.sweep)][key] = scenario
    names: dict[Key, ScenarioName] = {}
    for twins in points.values():
        distinguishing = _distinguishing({key: twin.values for key, twin in twins.items()})
        for same in _alike({key: without_policies(twin.values) for key, twin in twins.items()}):
            rivals = [twins[key].interventions for key in same]
            for key, changes in zip(same, rivals, strict=True):
                own = [change for change in changes if not all(change in rival for rival in rivals)]
                values, others = distinguishing[key]
                names[key] = ScenarioName({**twins[key].sweep, **values}, tuple(map(_change_text, own)), others)
    counts = Counter((scenarios[key].name, name.text) for key, name in names.items())
    return {key: replace(name, alone=counts[scenarios[key].name, name.text] == 1) for key, name in names.items()}


def flattened(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's values by the keys that ``--set`` takes, without its name, description and interventions."""
    return {key: value for key, value in _values(scenario, "") if key not in _APART}


def _values(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key in ("services", "streams", "groups") and isinstance(value, list | tuple):
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
        return flat.startswith(("services.", "streams.")) and flat.endswith(key.removeprefix("services.*"))
    return flat == key or flat.startswith(f"{key}.")


def without_policies(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return flattened values without those that say who plays."""
    return {key: value for key, value in values.items() if not _is_policy(key)}


def naming_values(values: Mapping[str, Any], policy: str) -> Mapping[str, Any]:
    """Return flattened values that name a run: who plays is among them only if no policy was asked for."""
    return values if policy == AS_CONFIGURED else without_policies(values)


def _distinguishing(scenarios: Mapping[Key, Mapping[str, Any]]) -> dict[Key, tuple[dict[str, Any], tuple[str, ...]]]:
    """Return for each scenario, flattened, the values in which it differs from others, and ``ScenarioName.others``.

    A table that not all have, as a group of clients, is named by the key of its list. Policies are among the values
    only where nothing else differs: runs are named after theirs.
    """
    keys = dict.fromkeys(key for values in scenarios.values() for key in values)
    differing = [key for key in keys if len({repr(values.get(key)) for values in scenarios.values()}) > 1]
    differing = [key for key in differing if not _is_policy(key)] or differing
    tables = tuple(key.removesuffix("name") for key in differing if key.endswith(".name"))
    differing = _few(scenarios, [key for key in differing if not key.startswith(tables)])
    lists = {table: table[:-1].rpartition(".")[0] for table in tables}
    return {
        place: (
            {key: values[key] for key in differing if values.get(key) is not None},
            tuple(dict.fromkeys(key for table, key in lists.items() if f"{table}name" in values)),
        )
        for place, values in scenarios.items()
    }


def _few(scenarios: Mapping[Key, Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """Return the keys that a name has room for: where they are too many, the largest sets that differ together go.

    So the points of a sweep keep their values beside a scenario that differs from all of them in many keys at once.
    """
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for key in keys:
        seen: dict[str, int] = {}
        together[tuple(seen.setdefault(repr(it.get(key)), len(seen)) for it in scenarios.values())].append(key)
    few = list(keys)
    while len(few) > MOST:
        most = max(map(len, together.values()))
        together = {apart: some for apart, some in together.items() if len(some) < most}
        few = [key for key in keys if any(key in some for some in together.values())]
    return few


def _alike(scenarios: Mapping[Key, Mapping[str, Any]]) -> Iterator[list[Key]]:
    """Yield groups of scenarios, flattened, that have the same values."""
    found: dict[str, list[Key]] = defaultdict(list)
    for place, values in scenarios.items():
        found[repr(sorted(values.items()))].append(place)
    yield from found.values()


def values_text(values: Mapping[str, Any]) -> str:
    """Return values in words, as ``--set`` takes them: ``clients.cores=2, services.mnist.budget=10``.

    Of a long list there are the first ones, and a hash that tells it from other lists.
    """
    return ", ".join(f"{key}={_text(value)}" for key, value in values.items())


def _change_text(change: Intervention) -> str:
    return f"{change.key} = {value_text(change.value)} from round {change.round}"


def _is_policy(key: str) -> bool:
    return key.rpartition(".")[2] in _POLICY or ".policy_options." in key


def _sorted_as(value: Any) -> tuple[bool, float, str]:
    """Return what sorts values of all kinds: numbers by their size, then the rest by its text."""
    return (False, value, "") if isinstance(value, int | float) else (True, 0, _text(value))


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # as a file has it
    if isinstance(value, list | tuple) and len(value) > LONGEST:
        whole = value_text(list(value))
        begun = ", ".join(map(_text, value[:2]))
        return f"[{begun}, ... {len(value)} in all, {sha256(whole.encode()).hexdigest()[:8]}]"
    return value if isinstance(value, str) else value_text(value)
