"""The regimes of whole scenarios: all of them, and a scenario that has them written out."""

from collections.abc import Iterable

from fl.regime import Regime
from scenarios.file.regimes import KEYS, Chosen
from scenarios.file.schema import Scenario


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
