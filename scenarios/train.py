"""``flmarket train``: from scenarios to trained agents.

``plan_training`` says what is trained on what, ``open_market`` seats learners and their rivals in a market,
``baselines`` plays heuristics in the learners' place, and ``run`` trains one agent.
"""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from numpy.random import Generator
from torch.backends.cpu import get_cpu_capability

from des.mechanism import MECHANISMS
from des.observation import Observation, Offer
from fl.arithmetic.streams import stream
from fl.backends import BACKENDS
from flmarket.core.declared import check_value
from flmarket.core.errors import InputError
from flmarket.core.installation import git_revision, versions
from flmarket.core.names import suggest
from flmarket.core.tracking import tracked
from learning.environments.actions import more_than_one_offer
from learning.mahdrl import paper
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.learner import MahdrlLearner
from learning.play_round import decide
from learning.policy import Policy, PolicyContext, agent_digest
from learning.training.agent_files import DESCRIPTION, folder_of
from learning.training.loop import Learner, MarketShape, OpenMarket, Plan, SeatedMarket, mean_row, play_episode, train
from learning.training.records import Row, is_announced
from scenarios.build import (
    Shelf,
    agents_of,
    build_federation,
    build_market,
    build_policy,
    known_curve,
    policy_context,
    require_no_new_players,
    require_one_point,
)
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario, Service
from scenarios.loader import digest
from scenarios.logs.directory import require_outside_runs
from scenarios.plugin_files import plugins_of
from scenarios.running.run_options import TrainOptions
from scenarios.suite.frozen import require_outside

PolicyName = Literal["mahdrl", "mahdrl-paper"]

AgentSettings = MahdrlSettings | paper.PaperSettings

Earlier = Callable[[PolicyContext, int], Policy | None]
"""Returns an earlier self to play a service in an episode; None before there are any."""

ITSELF = "itself"  # the rival that is an earlier self of the agent

HEURISTICS = ("hqfa", "random", "lcfa")
"""The best first: where services take turns, and every seat is a market of its own, only that one plays."""


@dataclass(frozen=True, slots=True)
class AgentTraining:
    """A training: the markets, the policy and the options."""

    # the markets, without a sweep, with the backend that is to be trained on; at least one
    scenarios: tuple[Scenario, ...]
    policy: PolicyName  # what is trained
    # hyper-parameters that differ from the defaults (``MahdrlSettings``, ``PaperSettings``)
    options: Mapping[str, Any]
    plan: Plan  # how long to train; ``run`` sets its ``seats`` and ``seed``
    rotate: bool = False  # whether services take turns to learn, against the scenario's own policies or ``rivals``
    # policies, ``NAME``, ``NAME:CHECKPOINT`` or ``itself``, that the other services draw from in every episode; if
    # empty, they play the scenario's
    rivals: tuple[str, ...] = ()
    command: str = ""  # what the user typed, for the agent's description

    @property
    def learners(self) -> tuple[tuple[str, ...], ...]:
        """Of each market, the services that it gives the trained policy, or all if it gives it to none."""
        found = []
        for scenario in self.scenarios:
            named = tuple(service.name for service in scenario.services if service.policy == self.policy)
            found.append(named or tuple(service.name for service in scenario.services))
        return tuple(found)

    @property
    def choices(self) -> dict[str, PolicyChoice]:
        return {rival: PolicyChoice.parse(rival, "rival") for rival in self.rivals if rival != ITSELF}

    @property
    def trains_models(self) -> bool:
        return any(BACKENDS[scenario.training.backend].trains for scenario in self.scenarios)


def plan_training(
    scenarios: Sequence[Scenario],  # see ``AgentTraining``
    options: TrainOptions = TrainOptions(),  # noqa: B008 - it is frozen
    settings: Mapping[str, Any] = MappingProxyType({}),  # hyper-parameters that differ from the defaults
    command: str = "",
) -> AgentTraining:
    """Return what to train.

    Exploration ends half-way, after 100 episodes at the latest; in several markets, where there is more to explore,
    after a quarter of the episodes.
    """
    require_outside(scenarios)
    policy, rivals, episodes = options.policy, options.rivals, options.episodes
    if len(scenarios) > 1 and policy != "mahdrl":
        raise InputError(f"policy {policy!r} can only be trained in one market; with several, train mahdrl")
    if ITSELF in rivals and policy != "mahdrl":
        raise InputError(f"rival {ITSELF!r}: only mahdrl keeps what it was; leave it out for {policy}")
    if set(rivals) == {ITSELF}:
        raise InputError(f"rival {ITSELF!r}: at first there is no earlier self; name another rival, too")
    plan = Plan(
        episodes=episodes,
        epsilon_episodes=max(1, min(100, episodes // 2) if len(scenarios) == 1 else episodes // 4),
        evaluate_every=options.evaluate_every,
        together=options.together,
    )
    training = AgentTraining(tuple(scenarios), policy, settings, plan, options.rotate, tuple(rivals), command)
    for rival, choice in training.choices.items():
        if choice.checkpoint is not None and not choice.takes("checkpoint"):
            raise InputError(f"rival {rival!r}: policy {choice.name!r} takes no checkpoint")
    return training


def settings_of(kind: Any, options: Mapping[str, Any], policy: str) -> Any:
    """Return the settings of a policy, with options in place of the defaults; its annotations say what they may be."""
    known = {field.name: field.type for field in fields(kind)}
    for name, value in options.items():
        if name not in known:
            raise InputError(f"unknown hyper-parameter {name!r} of {policy}{suggest(name, known)}")
        check_value(name, known[name], value)
    return kind(**options)


def run(
    training: AgentTraining,  # what to train on what
    seed: int,  # the training's seed
    out: Path,  # file of the agent; see ``learning.training.loop.train``
    shelf: Shelf,  # gives the data sets
    *,
    resume: bool = False,  # continue a training that was interrupted
    workers: int = 1,  # threads that train clients; results do not depend on it
    report: Callable[[Row], None] = lambda _: None,  # called with every row of the training log
) -> None:
    """Train one agent and write it to ``out``."""
    require_outside_runs(out)
    if not resume:
        _require_free(out)
    _require_playable(training)
    learners = training.learners
    plan = replace(training.plan, seed=seed, seats=learners if training.rotate else ((),) * len(learners))
    new, settings = new_learner(training, seed)
    provenance: dict[str, Any] = {
        "policy": training.policy,
        "agents": None if training.policy == "mahdrl" else list(learners[0]),
        "settings": asdict(settings),
        **_markets(training.scenarios, shelf),
        "rivals": list(training.rivals),
    }
    if learned := learned_rivals(training):
        provenance["rival_agents"] = learned
    met = [choice.name for choice in training.choices.values()]
    if plugins := {name: it for scenario in training.scenarios for name, it in plugins_of(scenario, met).items()}:
        provenance["plugins"] = plugins
    about = {
        "command": training.command,
        "versions": versions(),
        "machine": platform.machine(),
        "torch_cpu": str(get_cpu_capability()),  # torch's code for this CPU: the last bits depend on it
        "git": git_revision(),
    }
    earlier = new.earlier if isinstance(new, MahdrlLearner) else None

    def opened(
        market_index: int, episode: int, market_seed: int, seats: Sequence[str]
    ) -> AbstractContextManager[SeatedMarket]:
        return open_market(training, market_index, seats, episode, market_seed, shelf, workers, earlier)

    levels = None if training.trains_models else partial(baselines, training, opened, plan)  # else it takes minutes
    train(new, opened, plan, out, provenance, about, resume=resume, report=report, baselines=levels)


def new_learner(training: AgentTraining, seed: int) -> tuple[Learner, AgentSettings]:
    """Return a learner that has learned nothing yet, and its settings."""
    shapes = [shape_of(scenario) for scenario in training.scenarios]
    if training.policy == "mahdrl-paper":
        chosen: paper.PaperSettings = settings_of(paper.PaperSettings, training.options, training.policy)
        return paper.PaperLearner(training.learners[0], shapes[0], seed, chosen), chosen
    settings: MahdrlSettings = settings_of(MahdrlSettings, training.options, training.policy)
    if settings.curve and not settings.context:
        raise InputError("the hyper-parameter curve needs context: a learning curve is part of what an agent then sees")
    if settings.hindsight and training.trains_models:
        raise InputError(
            "the hyper-parameter hindsight needs learning curves, and this trains models; choose the backend noiseless"
        )
    if settings.hindsight and (ignored := training.options.keys() & {"horizon", "scale"}):
        raise InputError(f"with hindsight, credit comes from learning curves alone; leave out {min(ignored)}")
    new = MahdrlLearner(training.learners, shapes, seed, settings, selves=ITSELF in training.rivals)
    return new, settings


def shape_of(scenario: Scenario) -> MarketShape:
    """Return what a learner must know of a market."""
    return MarketShape(
        services=tuple(service.name for service in scenario.services),
        clients=scenario.clients.count,
        cores=scenario.clients.cores,
        rounds=scenario.rounds,
        reward_bases={service.name: service.reward_base for service in scenario.services},
        curves={service.name: known_curve(scenario, service) for service in scenario.services},
    )


def learned_rivals(training: AgentTraining) -> dict[str, str]:
    """Return the digests of the learned agents that a learner may meet: they are part of what it is trained on."""
    if training.rivals:
        digests = {rival: agent_digest(it.name, it.checkpoint) for rival, it in training.choices.items()}
        return {rival: digest for rival, digest in digests.items() if digest is not None}
    found: dict[str, str] = {}
    for scenario, learners in zip(training.scenarios, training.learners, strict=True):
        met = scenario.services
        if not training.rotate:  # who learns in every episode never plays an agent of the scenario
            met = tuple(service for service in met if service.name not in learners)
        found |= agents_of(scenario.model_copy(update={"services": met}))
    return found


def _require_free(out: Path) -> None:
    try:
        log = [] if is_announced(out) else [out.with_suffix(".csv")]
        for there in (out, out.with_suffix(DESCRIPTION), *log, folder_of(out)):
            if there.exists():
                raise InputError(f"{there}: already exists; continue with the option resume, or choose another file")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error


def _require_playable(training: AgentTraining) -> None:
    """Refuse markets whose rounds learners cannot play: each learns from one offer a round, priced from the bids."""
    for scenario in training.scenarios:
        require_one_point(scenario, "each scenario of a training is", "give one value in a file of your own")
        require_no_new_players(scenario, "training")
        name = scenario.market.mechanism
        if scenario.market.sequential:
            raise InputError("clients come one after another (market.impressions); training plays one offer a round")
        if reason := more_than_one_offer(MECHANISMS.create(name, **scenario.market.options)):
            raise InputError(
                f"mechanism {name!r} {reason}; training plays one offer a round, priced from the bids; "
                "choose another one for market.mechanism"
            )
    learn = zip(training.scenarios, training.learners, strict=True)
    if training.rivals and not training.rotate and all(len(names) == len(it.services) for it, names in learn):
        raise InputError("all services learn, so there are no rivals; add the option rotate")


def _markets(scenarios: Sequence[Scenario], shelf: Shelf) -> dict[str, Any]:
    """Return what an agent's description says of the markets that it was trained in."""
    hashes = [digest(scenario, shelf.digests(scenario)) for scenario in scenarios]
    backends = " and ".join(dict.fromkeys(scenario.training.backend for scenario in scenarios))
    if len(scenarios) == 1:
        return {"scenario": scenarios[0].name, "scenario_hash": hashes[0], "backend": backends}
    names = [scenario.name for scenario in scenarios]
    return {
        "scenario": f"{len(scenarios)} markets",
        "scenarios": [list(pair) for pair in zip(names, hashes, strict=True)],
        "backend": backends,
    }


@contextmanager
def open_market(
    training: AgentTraining,  # what is trained on what
    market_index: int,  # the market's scenario is the one at this index
    seats: Sequence[str],  # who learns; if empty, all that may
    episode: int,  # decides which rivals are drawn; 0 in evaluations, in which no earlier self plays
    seed: int,  # the market's
    shelf: Shelf,  # gives the data sets
    workers: int,  # threads that train clients
    earlier: Earlier | None = None,  # returns earlier selves, if any are to be met
) -> Iterator[SeatedMarket]:
    """Open one of the markets: the services in the seats learn, the others play as the training prescribes."""
    scenario, services, learners = training.scenarios[market_index], [], tuple(seats) or training.learners[market_index]
    selves: dict[str, Policy | None] = {}
    for service in scenario.services:
        if service.name in learners:
            service = PolicyChoice(training.policy).seat(service)
        elif training.rivals:
            rng = stream(seed, "rival", episode, service.name)
            service, selves[service.name] = _with_rival(training, scenario, service, rng, episode, earlier)
        services.append(service)
    scenario = scenario.model_copy(update={"services": tuple(services)})
    rivals = {
        service.name: selves.get(service.name) or build_policy(scenario, service)
        for service in scenario.services
        if service.name not in learners
    }
    federation = build_federation(scenario, seed, shelf, workers=workers)
    try:
        yield SeatedMarket(build_market(scenario, seed, federation), learners, rivals, market_index)
    finally:
        federation.close()


def _with_rival(
    training: AgentTraining, scenario: Scenario, service: Service, rng: Generator, episode: int, earlier: Earlier | None
) -> tuple[Service, Policy | None]:
    """Draw who plays a service; return it with its policy, and that policy itself where it is an earlier self."""
    rival = training.rivals[int(rng.integers(len(training.rivals)))]
    if rival == ITSELF:
        context = policy_context(scenario, service, known_curve(scenario, service))
        if episode and earlier is not None and (itself := earlier(context, episode)) is not None:
            return PolicyChoice(training.policy).seat(service), itself
        named = list(training.choices)
        rival = named[int(rng.integers(len(named)))]
    return training.choices[rival].seat(service), None


class _Heuristic(Learner):
    """One policy in the seats of the learners. It learns nothing."""

    def __init__(self, name: str, players: Mapping[str, Policy]) -> None:
        self._players, self._labels = players, dict.fromkeys(players, name)

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        decisions = decide(self._players, self._labels, observations)
        return {name: decision.offer for name, decision in decisions.items()}


def baselines(training: AgentTraining, opened: OpenMarket, plan: Plan) -> dict[str, Row]:
    """Return the row that an evaluation has with each of the paper's heuristics in place of the learners, by its name.

    No draw of theirs touches those of the training: all are keyed by the market's seed.
    """
    found = {}
    for name in HEURISTICS[:1] if plan.seats[0] else HEURISTICS:
        rows = []
        for market_index, seed, seats in tracked(list(plan.evaluations()), f"markets played by {name}"):
            scenario, mine = training.scenarios[market_index], seats or training.learners[market_index]
            services = [PolicyChoice(name).seat(service) for service in scenario.services]
            players = {s.name: build_policy(scenario, s) for s in services if s.name in mine}
            with opened(market_index, 0, seed, seats) as seated:
                rows.append(play_episode(_Heuristic(name, players), seated, 0, 0.0, learn=False))
        found[name] = mean_row(rows, 0)
    return found
