"""From a scenario to what makes its market from a seed, and who plays there: environments, leagues and evaluations."""

from collections.abc import Sequence

from des.market import Market
from learning.evaluation import Entrant, lineup
from learning.seats import MarketFactory
from scenarios.build import Shelf, build_federation, build_market, policy_options
from scenarios.file.schema import Scenario, Service
from scenarios.seats import require_no_new_players, require_one_point


def market_factory(
    scenario: Scenario,  # without a sweep
    shelf: Shelf | None = None,  # gives the data sets, which all markets share
    *,
    workers: int = 1,  # training threads of each market; results do not depend on it
) -> MarketFactory:
    """Return what makes the scenario's market from a seed. Close each market when done with it."""
    require_no_new_players(scenario, "an environment")
    require_one_point(scenario, "an environment plays", 'load it with {"sweep": {}, "runs": []} and a value for each')
    shelf = shelf or Shelf()

    def make(seed: int) -> Market:
        return build_market(scenario, seed, build_federation(scenario, seed, shelf, workers=workers))

    return make


def entrant(services: Sequence[Service]) -> Entrant:
    """Return the entrant whose services play the policies that they name."""
    return lineup({it.name: it.policy for it in services}, {it.name: policy_options(it) for it in services})
