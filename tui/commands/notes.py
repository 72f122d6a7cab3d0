"""What ``flmarket run`` notes before a batch: what a user should know before believing the results."""

from collections.abc import Sequence

from fl import fused
from fl.model_names import BUILTIN as BUILTIN_MODELS
from scenarios.build import Shelf, images_of
from scenarios.file.schema import Scenario


def notes(scenarios: Sequence[Scenario], shelf: Shelf) -> list[str]:
    """Return the notes on a batch of these scenarios, each once."""
    found = []
    if any(scenario.training.backend == "surrogate" for scenario in scenarios):
        found.append('backend = "surrogate": accuracies follow fitted curves; no model is trained (docs/surrogate.md)')
    if any(scenario.dqi == "published" for scenario in scenarios):
        found.append(
            'dqi = "published": the paper\'s parameters make DQI fall as data size grows (docs/decisions/dqi.md)'
        )
    for name in sorted({name for scenario in scenarios for name in images_of(scenario)}):
        if not shelf.get(name).official:
            found.append(f"data set {name!r}: the files are not known to be the official ones; say so with any result")
    if not fused.available() and any(_would_be_fused(scenario) for scenario in scenarios):
        found.append(
            "the fused kernel was not built (it needs a C++ compiler when flmarket is installed); training takes the "
            "reference path, which is about ten times slower (docs/performance.md)"
        )
    return found


def _would_be_fused(scenario: Scenario) -> bool:
    """Return whether the fused kernel would train some of a scenario's services, if it were there."""
    training = scenario.training
    if training.backend != "real" or training.device != "cpu" or training.kernel == "reference":
        return False
    return any(scenario.training_for(service.dataset).model in BUILTIN_MODELS for service in scenario.services)
