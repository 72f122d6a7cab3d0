"""From a scenario to RL environments. Needs the extra ``rl``."""

from collections.abc import Sequence

from flmarket.core.errors import InputError
from learning.environments.parallel_env import MarketEnv
from learning.environments.service_env import ServiceEnv
from learning.lockstep.market_kinds import TRAINS, LockstepError
from learning.lockstep.vector_env import VectorMarketEnv
from scenarios.build import backend_of, market_factory, policy_options
from scenarios.file.schema import Scenario


def parallel_env(
    scenario: Scenario,
    seed: int = 0,
    *,
    flat: bool = False,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
    workers: int = 1,
) -> MarketEnv:
    """Return the scenario's market as a PettingZoo environment: all services are agents, their policies unused.

    Args:
        scenario: without a sweep.
        seed, flat, gamma, payment_limit: see ``MarketEnv``.
        workers: training threads of each market; results do not depend on it.

    Raises:
        DatasetError: a data set is missing or corrupt.
    """
    factory = market_factory(scenario, workers=workers)
    return MarketEnv(factory, seed=seed, flat=flat, gamma=gamma, payment_limit=payment_limit)


def service_env(
    scenario: Scenario,
    service: str,
    seed: int = 0,
    *,
    flat: bool = True,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
    workers: int = 1,
) -> ServiceEnv:
    """Return a Gymnasium environment for one service; its rivals play the policies that the scenario gives them.

    They have the options and checkpoints that they have in a run.

    Args:
        scenario: without a sweep.
        service: name of the service that learns.
        seed, flat, gamma, payment_limit: see ``MarketEnv``.
        workers: training threads of each market; results do not depend on it.

    Raises:
        ValueError: the scenario has no such service.
        DatasetError: a data set is missing or corrupt.
        OptionsError: a rival's policy does not take its options.
    """
    rivals = [rival for rival in scenario.services if rival.name != service]
    return ServiceEnv(
        market_factory(scenario, workers=workers),
        service,
        {rival.name: rival.policy for rival in rivals},
        rival_options={rival.name: policy_options(rival) for rival in rivals},
        seed=seed,
        flat=flat,
        gamma=gamma,
        payment_limit=payment_limit,
    )


def vector_env(
    scenarios: Sequence[Scenario],
    markets: int = 256,
    seed: int = 0,
    *,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
) -> VectorMarketEnv:
    """Return many markets in lockstep as a Gymnasium ``VectorEnv``; every service of every market is a row.

    Args:
        scenarios: on the surrogate, without sweeps; market ``b`` plays the scenario ``b % len(scenarios)``.
        markets: B.
        seed, gamma, payment_limit: see ``VectorMarketEnv``.

    Raises:
        InputError: there is no scenario, or one cannot be played in lockstep.
        ValueError: gamma or payment_limit is out of range.
    """
    if not scenarios or markets < 1:
        raise InputError("markets in lockstep need at least one scenario and one market")
    if any(backend_of(scenario).trains for scenario in scenarios):
        raise LockstepError(TRAINS)  # before data is looked for that could not be used
    factories = [market_factory(scenario) for scenario in scenarios]
    seated = [factories[b % len(factories)] for b in range(markets)]
    return VectorMarketEnv(seated, seed=seed, gamma=gamma, payment_limit=payment_limit)
