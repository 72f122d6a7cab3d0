"""From a scenario to what its market is made of, without training anything (and without torch).

A round's data, bids and conditions follow from the scenario, the seed and the round alone. So a screen that replays a
run, or watches one in another process, sees the whole order book although the logs hold only the offers.
"""

from collections.abc import Mapping
from functools import lru_cache

from des.conditions import Conditions
from des.money import to_micro
from des.population import Population, Qualities
from fl.datasets import info
from fl.errors import InputError
from scenarios.build import dqi_parameters, interventions, population_spec
from scenarios.file.schema import Scenario


class World:
    """What every service and client of a scenario meets under one seed, whatever the policies do.

    Bids depend on how many labels the data sets have, so each must be known here, or its number be given; policies,
    models and the mechanism need not be known.
    """

    def __init__(self, scenario: Scenario, seed: int, labels: Mapping[str, int] | None = None) -> None:
        """Draw nothing yet.

        Args:
            scenario: what is played.
            seed: the run's seed.
            labels: L by data set, where a run has recorded it (``scenarios.logs.labels``); of others, what they have
                now.

        Raises:
            InputError: a data set is not known here, or the scenario is not one that can be played.
        """
        services, given = scenario.services, labels or {}
        counts = [given.get(service.dataset) or info(service.dataset).labels for service in services]
        parameters = [dqi_parameters(scenario.dqi, service.dataset) for service in services]
        try:
            self._population = Population(population_spec(scenario), counts, parameters, seed)
        except ValueError as error:  # of a run whose scenario.toml was changed
            raise InputError(f"scenario {scenario.name!r}: clients: {error}") from error
        self.mechanism = scenario.market.mechanism
        self._interventions = tuple(interventions(scenario))
        budgets = {service.name: to_micro(service.budget) for service in services}
        self._at_first = Conditions(budgets, scenario.clients.cores)
        # Screens look at the same few rounds again and again.
        self.qualities = lru_cache(maxsize=16)(self._draw)

    def _draw(self, round_: int) -> Qualities:
        """Return the data, DQI and bids [M, C] of a round."""
        return self._population.draw(round_)

    def conditions(self, round_: int) -> Conditions:
        """Return the budgets, K and who is offline in a round."""
        return self._at_first.at(round_, self._interventions)
