"""Markets to learn in, for notebooks and scripts: ``flmarket.train`` trains an agent, the others make environments."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_doc import Doc

from flmarket.api import scenario_of, scenarios_of
from flmarket.core.declared import arguments_of
from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from flmarket.core.installation import require_extra
from flmarket.core.names import unknown
from learning.environments.actions import require_in_range
from learning.environments.spaces import DictCodec, FlatCodec
from learning.lockstep.market_kinds import TRAINS, LockstepError
from scenarios.build import Shelf, backend_of, market_factory, observed_bounds, policy_options, require_one_point
from scenarios.file.schema import Scenario
from scenarios.plugin_files import require_no_plugin_file
from scenarios.running.run_options import Place, TrainOptions, threads

if TYPE_CHECKING:
    from learning.environments.parallel_env import MarketEnv
    from learning.environments.service_env import ServiceEnv
    from learning.lockstep.vector_env import VectorMarketEnv


@dataclass(frozen=True)
class Agent(TrainOptions):
    """The arguments of ``train``."""

    scenario: Annotated[
        "Place | Scenario | Sequence[Place | Scenario]",
        Doc("""The market to learn in, without a sweep, or several of them; its ``training.backend`` decides what is
        trained on."""),
    ]
    out: Annotated[Place, Doc("NAME.safetensors; the log and saved states go next to it.")]
    _: KW_ONLY
    seed: Annotated[int, Doc("The training's seed.")] = 0
    options: Annotated[
        "Mapping[str, Any] | None", Doc("Hyper-parameters that differ from the defaults (docs/mahdrl.md).")
    ] = None


@arguments_of(Agent)
def train(agent: Agent) -> Path:
    """Train an agent; return its file, for ``policies=["mahdrl:FILE"]`` or a service's ``checkpoint``.

    Raises:
        InputError: the scenario, an option, or what is at ``out`` cannot be used.
        RunError: a model's training failed.
    """
    require_no_plugin_file("train")
    require_extra("torch", "flmarket.train", "PyTorch", "torch")
    from learning.training.agent_files import place
    from scenarios.train import plan_training
    from scenarios.train import run as run_training

    markets, seed = scenarios_of(agent.scenario), agent.seed
    if not markets:
        raise InputError("scenario = []: name at least one")
    names: object = markets[0].name if len(markets) == 1 else [market.name for market in markets]
    command = f"flmarket.train({names!r}, policy={agent.policy!r}, episodes={agent.episodes}, seed={seed})"
    training = plan_training(markets, agent, agent.options or {}, command)
    path = place(expanded(agent.out), seed, [seed])
    run_training(training, seed, path, Shelf(), resume=agent.resume, workers=threads(1, agent.workers))
    return path


def parallel_env(
    scenario: "Place | Scenario",
    seed: int = 0,
    *,
    flat: bool = False,
    padded: bool = False,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
    workers: int = 1,
) -> "MarketEnv":
    """Return a scenario's market as a PettingZoo environment, in which every service is an agent (extra ``rl``).

    Args:
        scenario: without a sweep.
        seed: decides the seeds of the episodes; ``reset(seed=s)`` plays the market of seed s.
        flat: whether observations and actions are one Box each instead of Dicts.
        padded: whether services that have left, or have not arrived, stay agents until the market ends: for libraries
            that want the same agents in every step. No action of theirs is looked at, and their reward is 0.
        gamma: discount factor of the absorbing reward, in (0, 1]; the paper's is 0.95.
        payment_limit: highest payment that an agent can offer, in units of the bid; above 1.
        workers: training threads; results do not depend on it.

    Raises:
        InputError: the extra ``rl`` is not installed, or the scenario, or a data set that it needs, cannot be used.
    """
    _require_rl("flmarket.parallel_env")
    from learning.environments.parallel_env import MarketEnv

    factory = market_factory(scenario_of(scenario), workers=workers)
    return MarketEnv(factory, seed=seed, flat=flat, padded=padded, gamma=gamma, payment_limit=payment_limit)


def service_env(
    scenario: "Place | Scenario",
    service: str,
    seed: int = 0,
    *,
    flat: bool = True,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
    workers: int = 1,
) -> "ServiceEnv":
    """Return a Gymnasium environment for one service; its rivals play the scenario's policies (extra ``rl``).

    Args:
        scenario: without a sweep.
        service: the name of the service that learns.
        seed: decides the seeds of the episodes; ``reset(seed=s)`` plays the market of seed s.
        flat, gamma, payment_limit, workers: as in ``parallel_env``.

    Raises:
        InputError: the extra ``rl`` is not installed, the scenario has no such service, or it, or a data set that it
            needs, cannot be used.
    """
    _require_rl("flmarket.service_env")
    from learning.environments.service_env import ServiceEnv

    market = scenario_of(scenario)
    _require_service(market, service)
    rivals = [rival for rival in market.services if rival.name != service]
    return ServiceEnv(
        market_factory(market, workers=workers),
        service,
        {rival.name: rival.policy for rival in rivals},
        rival_options={rival.name: policy_options(rival) for rival in rivals},
        seed=seed,
        flat=flat,
        gamma=gamma,
        payment_limit=payment_limit,
    )


def spaces(
    scenario: "Place | Scenario", service: str, *, flat: bool = True, payment_limit: float = 2.0
) -> FlatCodec | DictCodec:
    """Return how the environments encode what a service of a scenario observes, and decode its actions.

    ``encode(observation)`` and ``decode(action, observation)`` are what ``service_env`` and ``parallel_env`` do;
    ``encode_offer(offer, observation)`` gives the action that makes an offer. ``policy_from`` makes a policy with them.

    Args:
        scenario: without a sweep.
        service: the name of the service.
        flat, payment_limit: as in ``parallel_env``.

    Raises:
        InputError: the scenario cannot be used, or has no such service.
        ValueError: payment_limit is out of range.
    """
    require_in_range(1.0, payment_limit)
    market = scenario_of(scenario)
    require_one_point(market, "spaces are those of", 'load it with {"sweep": {}, "runs": []} and a value for each')
    _require_service(market, service)
    return (FlatCodec if flat else DictCodec)(observed_bounds(market, service), payment_limit)


def vector_env(
    scenarios: "Place | Scenario | Sequence[Place | Scenario]",
    markets: int = 256,
    seed: int = 0,
    *,
    gamma: float = 0.95,
    payment_limit: float = 2.0,
) -> "VectorMarketEnv":
    """Return many markets in lockstep as a Gymnasium ``VectorEnv``: each service of each is a row (extra ``rl``).

    Args:
        scenarios: one, or several that the markets take in turn: on the surrogate, without sweeps, of any sizes.
        markets: B, how many are played at once.
        seed: market ``b`` draws the seeds of its episodes from ``seed + b``.
        gamma, payment_limit: as in ``parallel_env``.

    Raises:
        InputError: the extra ``rl`` is not installed, or a scenario cannot be played in lockstep; says why.
        ValueError: gamma or payment_limit is out of range.
    """
    _require_rl("flmarket.vector_env")
    from learning.lockstep.vector_env import VectorMarketEnv

    played = scenarios_of(scenarios)
    if not played or markets < 1:
        raise InputError("markets in lockstep need at least one scenario and one market")
    if any(backend_of(scenario).trains for scenario in played):
        raise LockstepError(TRAINS)  # before data is looked for that could not be used
    factories = [market_factory(scenario) for scenario in played]
    seated = [factories[b % len(factories)] for b in range(markets)]
    return VectorMarketEnv(seated, seed=seed, gamma=gamma, payment_limit=payment_limit)


def _require_rl(what: str) -> None:
    require_extra("rl", what, "PettingZoo and Gymnasium", "gymnasium", "pettingzoo")


def _require_service(scenario: "Scenario", service: str) -> None:
    names = [it.name for it in scenario.services]
    if service not in names:
        raise InputError(unknown("service", service, names))
