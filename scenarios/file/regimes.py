"""How each data set of a scenario is trained, and why: what the file says, what was fitted, or the general default.

Key by key: ``[training.by_dataset.NAME]`` goes first, then ``[training]``. What both leave out is as in the regime that
the fits which come with flmarket were measured in, so that a scenario without ``[training]`` meets its data set's
curve and DQI; a data set without such fits has the general default. Fits of the user's own change nothing here: a
scenario means the same on every machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from fl.fitted import shipped_regime
from fl.regime import Regime

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario

Origin = Literal["scenario", "fits", "default"]
"""Where the value of a key comes from."""

KEYS = tuple(field.name for field in fields(Regime))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The regime of one data set.

    Attributes:
        dataset: its name.
        regime: how its clients train.
        origins: where the value of each key comes from.
    """

    dataset: str
    regime: Regime
    origins: Mapping[str, Origin]

    def __str__(self) -> str:
        return f"{self.dataset}: {self.regime} ({self._why})"

    @property
    def departs(self) -> bool:
        """Whether fits give a key another value than the general default."""
        return any(self.origins[key] == "fits" and getattr(self.regime, key) != getattr(Regime(), key) for key in KEYS)

    @property
    def _why(self) -> str:
        written = [key for key in KEYS if self.origins[key] == "scenario"]
        if len(written) == len(KEYS):
            return "as the scenario says"
        rest = "as in its fits" if "fits" in self.origins.values() else "by default: flmarket has no fits of it"
        return f"{', '.join(written)} as the scenario says, the rest {rest}" if written else rest


def choose(dataset: str, tables: Sequence[Mapping[str, Any]]) -> Chosen:
    """Return the regime of a data set.

    Args:
        dataset: its name.
        tables: ``[training.by_dataset.NAME]`` and ``[training]``, in this order; a key that is absent or None is left
            out.
    """
    fitted = shipped_regime(dataset)
    rest, origin = (Regime(), "default") if fitted is None else (fitted, "fits")
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for key in KEYS:
        written = next((table[key] for table in tables if table.get(key) is not None), None)
        values[key] = getattr(rest, key) if written is None else written
        origins[key] = origin if written is None else "scenario"  # type: ignore[assignment]
    return Chosen(dataset, Regime(**values), origins)


def of_markets(scenarios: Iterable["Scenario"]) -> list[Chosen]:
    """Return the regimes of all data sets that the services of some scenarios learn, each once."""
    found: list[Chosen] = []
    for scenario in scenarios:
        for name in dict.fromkeys(service.dataset for service in scenario.services):
            if (chosen := scenario.regime_of(name)) not in found:
                found.append(chosen)
    return found


def settled(scenario: "Scenario") -> "Scenario":
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
