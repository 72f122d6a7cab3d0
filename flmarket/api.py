"""The functions for notebooks and scripts: load, run, read and train, and the environments.

torch and pandas are imported by the functions that need them.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_doc import Doc

from flmarket.core.declared import told_by
from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from flmarket.core.installation import require_extra
from flmarket.core.names import unknown
from learning.policy import POLICIES
from scenarios.build import Shelf, backend_of, market_factory, observed_bounds, policy_options, require_one_point
from scenarios.file.schema import Scenario
from scenarios.loader import load as load_scenario
from scenarios.plugin_files import is_loading
from scenarios.running.run_options import Place, RunOptions, TrainOptions, threads

if TYPE_CHECKING:
    from flmarket.analysis.dataframes import Results
    from learning.environments.parallel_env import MarketEnv
    from learning.environments.service_env import ServiceEnv
    from learning.environments.spaces import DictCodec, FlatCodec
    from learning.lockstep.vector_env import VectorMarketEnv
    from learning.policy import Policy
    from scenarios.file.schema import Scenario
    from scenarios.running.progress import Tracker


def load(scenario: Place, overrides: Mapping[str, Any] | None = None) -> "Scenario":
    """Read and check a scenario.

    Args:
        scenario: a TOML file, or the name of a built-in scenario.
        overrides: values to change, by dotted key, services by name: ``{"services.mnist.budget": 15}``.

    Raises:
        ScenarioError: it cannot be read, or something in it is wrong; names every problem with its line. An InputError.
            Whether policies take their options is checked by ``run``, which may replace the policies.
    """
    if isinstance(overrides, str):
        raise InputError(f"overrides = {overrides!r}: must be a mapping such as {{'rounds': 3}}")
    return load_scenario(_text(scenario), overrides or {})


@dataclass(frozen=True)
class Batch(RunOptions):
    """The arguments of ``run``."""

    scenario: Annotated[
        "Place | Scenario | Sequence[Place | Scenario]",
        Doc("A scenario, a file, the name of a built-in scenario, or several of these; each may have a sweep."),
    ]
    policies: Annotated[
        "str | type[Policy] | Iterable[str | type[Policy]]",
        Doc(
            "For every service; one run each. A name, a name with options (``fmore(weight=4)``) or with the file of a "
            "trained agent (``mahdrl:agent.safetensors``), ``all`` for every policy that can play, or a class of your "
            "own. If none is given: the scenario's, with their options."
        ),
    ] = ()
    seeds: Annotated["int | Iterable[int]", Doc("One run each; a number N means the seeds 0 to N - 1.")] = 1
    _: KW_ONLY
    progress: Annotated[bool, Doc("Report progress, notes and failures on stderr.")] = True
    trackers: Annotated[
        "Sequence[Tracker]", Doc("Follow the runs that are played: ``[flmarket.TensorBoard('curves')]``.")
    ] = ()


@told_by(Batch)
def run(batch: Batch) -> "Results":
    """Run scenarios, and return what their runs came to.

    Runs that are already complete in ``out`` are read, not played again; an interrupted one continues from its last
    checkpoint.

    With ``jobs=1`` runs are played in this process, where a debugger and ``print`` work; with ``decision_timeout`` in
    processes of their own, too. Whatever a policy raises, SystemExit too, fails its run and no other; but one that ends
    or crashes its process ends this one.

    Raises:
        InputError: a scenario, a policy, a data set or a directory cannot be used; or a plug-in file calls this.
        BatchFailed: some runs failed; names them and the first one's reason; ``read(*error.complete)`` gives the
            others.
    """
    require_no_plugin_file("run")
    from flmarket.analysis.dataframes import Results
    from scenarios.running.batch import play_batch  # which takes half as long to import as all that loading needs

    policies, seeds = batch.policies, batch.seeds
    names = list(policies) if isinstance(policies, Iterable) and not isinstance(policies, str | type) else [policies]
    try:
        played = play_batch(
            _scenarios(batch.scenario, batch.values),
            POLICIES.names_of(names),
            range(seeds) if isinstance(seeds, int) else seeds,
            batch,
            progress=batch.progress,
            failures=batch.progress,
            trackers=batch.trackers,
        )
    except KeyboardInterrupt as error:
        error.add_note("the same call continues each interrupted run from its last checkpoint")
        raise
    return Results([run.directory.path for run in played.complete])


def read(*sources: Place) -> "Results":
    """Return the complete runs among and below the given directories.

    Raises:
        InputError: there is none, or a log is damaged.
    """
    from flmarket.analysis.dataframes import Results

    if not sources:
        raise InputError("no directory is given; name at least one, such as read('runs')")
    return Results([expanded(source) for source in sources])


@dataclass(frozen=True)
class Agent(TrainOptions):
    """The arguments of ``train``."""

    scenario: Annotated[
        "Place | Scenario | Sequence[Place | Scenario]",
        Doc(
            "The market to learn in, without a sweep, or several of them; its ``training.backend`` decides what is "
            "trained on."
        ),
    ]
    out: Annotated[Place, Doc("NAME.safetensors; the log and saved states go next to it.")]
    _: KW_ONLY
    seed: Annotated[int, Doc("The training's seed.")] = 0
    options: Annotated[
        "Mapping[str, Any] | None", Doc("Hyper-parameters that differ from the defaults (docs/mahdrl.md).")
    ] = None


@told_by(Agent)
def train(agent: Agent) -> Path:
    """Train an agent; return its file, for ``policies=["mahdrl:FILE"]`` or a service's ``checkpoint``.

    Raises:
        InputError: the scenario, an option, or what is at ``out`` cannot be used.
        RunError: a model's training failed.
    """
    require_no_plugin_file("train")
    require_extra("torch", "flmarket.train", "PyTorch", "torch")
    from scenarios.train import place, plan_training
    from scenarios.train import run as run_training

    markets, seed = _scenarios(agent.scenario), agent.seed
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

    factory = market_factory(_scenario(scenario), workers=workers)
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

    market = _scenario(scenario)
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
) -> "FlatCodec | DictCodec":
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
    from learning.environments.limits import require_in_range
    from learning.environments.spaces import DictCodec, FlatCodec

    require_in_range(1.0, payment_limit)
    market = _scenario(scenario)
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
    from learning.lockstep.market_kinds import TRAINS, LockstepError
    from learning.lockstep.vector_env import VectorMarketEnv

    played = _scenarios(scenarios)
    if not played or markets < 1:
        raise InputError("markets in lockstep need at least one scenario and one market")
    if any(backend_of(scenario).trains for scenario in played):
        raise LockstepError(TRAINS)  # before data is looked for that could not be used
    factories = [market_factory(scenario) for scenario in played]
    seated = [factories[b % len(factories)] for b in range(markets)]
    return VectorMarketEnv(seated, seed=seed, gamma=gamma, payment_limit=payment_limit)


def require_no_plugin_file(what: str) -> None:
    """Refuse to play while a plug-in file is loaded: every process that plays its runs would play them again."""
    if is_loading():
        raise InputError(
            f"a plug-in file must not call flmarket.{what} when it is loaded; put the call below "
            '`if __name__ == "__main__":`'
        )


def _require_rl(what: str) -> None:
    require_extra("rl", what, "PettingZoo and Gymnasium", "gymnasium", "pettingzoo")


def _scenarios(
    given: "Place | Scenario | Sequence[Place | Scenario]", values: Mapping[str, Any] | None = None
) -> "list[Scenario]":
    """Return one scenario, or several, with other values in files, by key. Errors as in ``_scenario``."""
    if isinstance(given, str | PathLike | Scenario) or not isinstance(given, Iterable):
        return [_scenario(given, values)]
    return [_scenario(one, values) for one in given]


def _scenario(given: "Place | Scenario", values: Mapping[str, Any] | None = None) -> "Scenario":
    """Return a scenario.

    Raises:
        InputError: it is something else, or cannot be read.
    """
    if isinstance(given, str | PathLike):
        return load(given, values)
    if not isinstance(given, Scenario):
        raise InputError(
            f"scenario = {str(given)[:80]!r}: must be a file, the name of a built-in one, or what flmarket.load returns"
        )
    return given


def _require_service(scenario: "Scenario", service: str) -> None:
    names = [it.name for it in scenario.services]
    if service not in names:
        raise InputError(unknown("service", service, names))


def _text(place: Place) -> str:
    """Return a place as text, so that built-in names and paths are distinguished as on the command line."""
    text = os.fspath(place)
    return str(expanded(text)) if text.startswith("~") else text
