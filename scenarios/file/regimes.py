"""The training regime of each data set of a scenario, key by key, and the origin of each value.

``[training.by_dataset.NAME]`` goes first, then ``[training]``; then the regime of the fits that come with flmarket, so
that a data set meets its curve and DQI; then the general default. Fits of the user's own change nothing here: a
scenario means the same on every machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from fl.surrogate.fitted import shipped_regime
from fl.training.regime import Regime

Origin = Literal["scenario", "fits", "default"]  # where the value of a key comes from

KEYS = tuple(field.name for field in fields(Regime))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The regime of one data set."""

    dataset: str  # its name
    regime: Regime  # how its clients train
    origins: Mapping[str, Origin]  # where the value of each key comes from

    def __str__(self) -> str:
        return f"{self.dataset}: {self.regime} ({self._why})"

    @property
    def departs(self) -> bool:
        return any(self.origins[key] == "fits" and getattr(self.regime, key) != getattr(Regime(), key) for key in KEYS)

    @property
    def _why(self) -> str:
        written = [key for key in KEYS if self.origins[key] == "scenario"]
        if len(written) == len(KEYS):
            return "as the scenario says"
        rest = "as in its fits" if "fits" in self.origins.values() else "by default: flmarket has no fits of it"
        return f"{', '.join(written)} as the scenario says, the rest {rest}" if written else rest


def choose(
    dataset: str,  # its name
    # ``[training.by_dataset.NAME]`` and ``[training]``, in this order; a key that is absent or None is left out
    tables: Sequence[Mapping[str, Any]],
) -> Chosen:
    """Return the regime of a data set."""
    fitted = shipped_regime(dataset)
    rest, origin = (Regime(), "default") if fitted is None else (fitted, "fits")
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for key in KEYS:
        written = next((table[key] for table in tables if table.get(key) is not None), None)
        values[key] = getattr(rest, key) if written is None else written
        origins[key] = origin if written is None else "scenario"  # type: ignore[assignment]
    return Chosen(dataset, Regime(**values), origins)
