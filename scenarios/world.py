"""From a scenario to what its market is made of, without training anything (and without torch).

A round's data, bids and conditions follow from the scenario, the seed and the round alone. So a screen that replays a
run, or watches one in another process, sees the whole order book although the logs hold only the offers.
"""

from functools import lru_cache

from des.conditions import Conditions
from des.population import Population, Qualities
from scenarios.build import interventions, population_spec, service_spec
from scenarios.file.schema import Scenario


class World:
    """What every service and client of a scenario meets under one seed, whatever the policies do."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        specs = [service_spec(scenario, service) for service in scenario.services]
        self._population = Population(
            population_spec(scenario), [spec.labels for spec in specs], [spec.dqi for spec in specs], seed
        )
        self.mechanism = scenario.market.mechanism
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
