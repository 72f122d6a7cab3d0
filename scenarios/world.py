"""From a scenario to what its market is made of, without training anything (and without torch).

A round's data, bids and conditions follow from the scenario, the seed and the round alone. So a screen that replays a
run, or watches one in another process, sees the whole order book although the logs hold only the offers.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from des.conditions import Conditions, Intervention
from des.money import to_micro
from des.population import Population, PopulationSpec, Qualities
from des.service import ServiceSpec
from fl.quality import PUBLISHED, DQIParameters
from learning.policy import load as load_policy
from scenarios.schema import Scenario


class World:
    """What every service and client of a scenario meets under one seed, whatever the policies do."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        specs = service_specs(scenario)
        self._population = Population(
            population_spec(scenario), [spec.labels for spec in specs], [spec.dqi for spec in specs], seed
        )
        self._interventions = tuple(interventions(scenario))
        self._at_first = Conditions({spec.name: spec.budget for spec in specs}, scenario.clients.cores)
        # Screens look at the same few rounds again and again.
        self.qualities = lru_cache(maxsize=16)(self._draw)

    def _draw(self, round_: int) -> Qualities:
        """Return the data, DQI and bids [M, C] of a round."""
        return self._population.draw(round_)

    def conditions(self, round_: int) -> Conditions:
        """Return the budgets, K and who is offline in a round."""
        return self._at_first.at(round_, self._interventions)


def population_spec(scenario: Scenario) -> PopulationSpec:
    """Return the clients of a scenario."""
    clients = scenario.clients
    return PopulationSpec(
        count=clients.count,
        cores=clients.cores,
        data_sizes=tuple(clients.data_size),
        emds=tuple(clients.emd),
        cost_per_sample=clients.cost.per_sample,
        cost_per_emd=clients.cost.per_emd,
        speeds=tuple(clients.speed),
        departure_rate=clients.departure_rate,
    )


def service_specs(scenario: Scenario) -> list[ServiceSpec]:
    """Return the services of a scenario, in its order."""
    from fl.datasets import info

    return [
        ServiceSpec(
            name=service.name,
            dataset=service.dataset,
            labels=info(service.dataset).labels,
            dqi=dqi_parameters(scenario.dqi),
            budget=to_micro(service.budget),
            target_accuracy=service.target_accuracy,
            reward_base=service.reward_base,
            local_epochs=scenario.training_for(service.dataset).local_epochs,
            policy=service.policy,
            privileged=load_policy(service.policy).privileged,
        )
        for service in scenario.services
    ]


def interventions(scenario: Scenario) -> Iterator[Intervention]:
    """Yield what the scenario changes in the middle of a run."""
    for entry in scenario.interventions:
        match entry.key.split("."):
            case ["clients", "cores"]:
                yield Intervention(entry.round, cores=entry.value)
            case ["clients", "offline"]:
                yield Intervention(entry.round, offline=frozenset(entry.value))
            case ["services", *name, "budget"]:
                yield Intervention(entry.round, budgets={".".join(name): to_micro(entry.value)})


def dqi_parameters(which: str) -> DQIParameters:
    """Return the parameters of eq. (6) for a scenario's ``dqi``.

    There are no own fits yet; ``fitted`` is the published set with the sign of eta1 turned, so that DQI rises with the
    data size as the paper's text has it. ``flmarket run`` says so.
    """
    return PUBLISHED if which == "published" else replace(PUBLISHED, eta1=abs(PUBLISHED.eta1))
