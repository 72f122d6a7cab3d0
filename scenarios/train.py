"""``flmarket train``: from a scenario to trained agents."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from des.mechanisms import create as create_mechanism
from fl.errors import InputError
from fl.streams import stream
from learning.checks import more_than_one_offer
from learning.mahdrl import learner
from learning.mahdrl.checkpoint import DESCRIPTION, TENSORS
from learning.mahdrl.paper import algorithm as paper
from learning.mahdrl.paper import settings as paper_settings
from learning.mahdrl.paper.serial_learner import SerialLearner
from learning.mahdrl.shape import Shape
from learning.mahdrl.training import Learner, Plan, Table, train
from learning.mahdrl.training_log import Row
from learning.policy import agent_digest
from scenarios.baselines import baselines
from scenarios.build import Shelf, agents_of, build_federation, build_market, build_policy
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.hyper_parameters import settings_of
from scenarios.loader import digest
from scenarios.plugins import plugins_of
from scenarios.running.provenance import git_revision, versions
from scenarios.seats import require_no_switches
from scenarios.suite.reserved import require_outside

PolicyName = Literal["mahdrl", "mahdrl-paper"]


@dataclass(frozen=True, slots=True)
class Training:
    """What to train on what.

    Attributes:
        scenario: without a sweep, with the backend that is to be trained on.
        policy: what is trained.
        options: hyper-parameters that differ from the defaults (``learner.Settings``, ``paper.settings.Settings``).
        plan: how long to train; ``run`` sets its ``seats`` and ``seed``.
        rotate: whether services take turns to learn, against the scenario's own policies or ``rivals``.
        rivals: policies, ``NAME`` or ``NAME:CHECKPOINT``, that the other services draw from in every episode; if empty,
            they play the scenario's.
        command: what the user typed, for the agent's description.
    """

    scenario: Scenario
    policy: PolicyName
    options: Mapping[str, Any]
    plan: Plan
    rotate: bool = False
    rivals: tuple[str, ...] = ()
    command: str = ""

    @property
    def learners(self) -> tuple[str, ...]:
        """The services that the scenario gives the trained policy, or all if it gives it to none."""
        services = self.scenario.services
        named = tuple(service.name for service in services if service.policy == self.policy)
        return named or tuple(service.name for service in services)


def plan_training(
    scenario: Scenario,
    policy: PolicyName,
    *,
    episodes: int = 200,
    rotate: bool = False,
    together: int = 1,
    rivals: Sequence[str] = (),
    evaluate_every: int = 25,
    options: Mapping[str, Any],
    command: str,
) -> Training:
    """Return what to train; exploration ends half-way, after 100 episodes at the latest.

    Args:
        scenario, policy, rotate, rivals, options, command: see ``Training``.
        episodes: markets to learn from.
        together: with ``rotate``, services that learn in the same episode.
        evaluate_every: episodes between two evaluations.

    Raises:
        InputError: the policy cannot be trained, a rival's policy is unknown, a number is less than 1, ``together``
            is given without ``rotate``, or the market is one of the suite's.
    """
    require_outside(scenario)
    if policy not in get_args(PolicyName):
        raise InputError(f"policy {policy!r} cannot be trained; choose from {', '.join(get_args(PolicyName))}")
    for name, number in {"episodes": episodes, "together": together, "evaluate_every": evaluate_every}.items():
        if not isinstance(number, int) or number < 1:
            raise InputError(f"{name} = {number!r}: must be an integer of at least 1")
    if isinstance(rivals, str):
        raise InputError(f"rivals = {rivals!r}: must be a list of policies")
    for rival in rivals:
        choice = PolicyChoice.parse(rival, "--rivals")
        if choice.checkpoint is not None and not choice.takes("checkpoint"):
            raise InputError(f"--rivals {rival}: policy {choice.name!r} takes no checkpoint")
    if together > 1 and not rotate:
        raise InputError("--together is the number of services that learn in the same turn; add --rotate")
    plan = Plan(
        episodes=episodes,
        epsilon_episodes=min(100, max(1, episodes // 2)),
        evaluate_every=evaluate_every,
        together=together,
    )
    return Training(scenario, policy, options, plan, rotate, tuple(rivals), command)


def place(out: Path, seed: int, seeds: Sequence[int]) -> Path:
    """Return the file of one seed's agent: ``out`` with the suffix that agents have, numbered if there are several.

    Raises:
        InputError: it names no file.
    """
    if not out.name:
        raise InputError(f"--out {str(out)!r}: must name a file, NAME{TENSORS}")
    stem = out.with_suffix("") if out.suffix in (TENSORS, DESCRIPTION) else out
    return stem.with_name(f"{stem.name}-seed{seed}{TENSORS}" if len(seeds) > 1 else f"{stem.name}{TENSORS}")


def run(
    training: Training,
    seed: int,
    out: Path,
    shelf: Shelf,
    *,
    resume: bool = False,
    workers: int = 1,
    report: Callable[[Row], None] = lambda _: None,
) -> None:
    """Train one agent and write it to ``out``.

    Args:
        training: what to train on what.
        seed: the training's seed.
        out: file of the agent; see ``learning.mahdrl.training.train``.
        shelf: gives the data sets.
        resume: continue a training that was interrupted.
        workers: threads that train clients; results do not depend on it.
        report: called with every row of the training log.

    Raises:
        InputError: the scenario, its mechanism, an option, a data set or what is at ``out`` cannot be used.
        RunError: training diverged.
    """
    if not resume:
        _require_free(out)
    scenario, names = training.scenario, training.learners
    if scenario.sweep:
        raise InputError(f"scenario {scenario.name!r} has a sweep; train on one point of it, with --set")
    _require_mechanism(scenario)
    _require_seats(training)
    plan = replace(training.plan, seed=seed, seats=names if training.rotate else ())
    new, settings = new_learner(training, seed)
    shared = getattr(settings, "share", False)
    provenance: dict[str, Any] = {
        "policy": training.policy,
        "agents": None if shared else list(names),
        "settings": asdict(settings),
        "scenario": scenario.name,
        "scenario_hash": digest(scenario, shelf.digests(scenario)),
        "backend": scenario.training.backend,
        "rivals": list(training.rivals),
    }
    if learned := learned_rivals(training):
        provenance["rival_agents"] = learned
    if plugins := plugins_of(scenario, [PolicyChoice.parse(rival).name for rival in training.rivals]):
        provenance["plugins"] = plugins
    about = {
        "command": training.command,
        "versions": versions(),
        "machine": platform.machine(),
        "torch_cpu": _torch_cpu(),
        "git": git_revision(),
    }

    def opened(episode: int, market_seed: int, seats: Sequence[str]) -> AbstractContextManager[Table]:
        return open_table(training, seats or names, episode, market_seed, shelf, workers)

    levels = None
    if scenario.training.backend == "surrogate":  # with real training they would take minutes
        levels = partial(baselines, scenario, names, opened, plan)
    train(new, opened, plan, out, provenance, about, resume=resume, report=report, baselines=levels)


def _torch_cpu() -> str:
    """Return which of its code torch chose for this CPU (``AVX512``): the agent's last bits depend on it."""
    from torch.backends.cpu import get_cpu_capability  # only training needs torch

    return str(get_cpu_capability())


def learned_rivals(training: Training) -> dict[str, str]:
    """Return the digests of the learned agents that a learner may meet: they are part of what it is trained on."""
    if training.rivals:
        choices = {rival: PolicyChoice.parse(rival) for rival in training.rivals}
        digests = {rival: agent_digest(it.name, it.checkpoint) for rival, it in choices.items()}
        return {rival: digest for rival, digest in digests.items() if digest is not None}
    scenario = training.scenario
    if not training.rotate:  # who learns in every episode never plays an agent of the scenario
        met = tuple(service for service in scenario.services if service.name not in training.learners)
        scenario = scenario.model_copy(update={"services": met})
    return agents_of(scenario)


def _require_free(out: Path) -> None:
    """Refuse to overwrite anything."""
    try:
        for suffix in (TENSORS, DESCRIPTION, ".csv", ".training"):
            if (there := out.with_suffix(suffix)).exists():
                raise InputError(f"{there}: already exists; continue with --resume, or choose another --out")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error


def _require_mechanism(scenario: Scenario) -> None:
    """Refuse a market whose rounds learners cannot play: each learns from one offer a round, priced from the bids."""
    require_no_switches(scenario, "training")
    name = scenario.market.mechanism
    if reason := more_than_one_offer(create_mechanism(name, scenario.market.options)):
        raise InputError(
            f"mechanism {name!r} {reason}; training plays one offer a round, priced from the bids; "
            "choose another mechanism, with --set market.mechanism=NAME"
        )


def _require_seats(training: Training) -> None:
    """Refuse options that would do nothing."""
    names, services = training.learners, training.scenario.services
    if training.plan.together > len(names):
        raise InputError(f"--together {training.plan.together}: only {len(names)} services learn; choose fewer")
    alone = training.rotate and training.plan.together < len(services)
    if training.rivals and len(names) == len(services) and not alone:
        raise InputError("--rivals: all services learn, so there are no rivals; add --rotate")


def new_learner(training: Training, seed: int) -> tuple[Learner, learner.Settings | paper_settings.Settings]:
    """Return a learner that has learned nothing yet, and its settings.

    Raises:
        InputError: an option is not one of the policy's hyper-parameters.
    """
    kind: tuple[Any, Any] = (learner.Learner, learner.Settings)
    if training.policy == "mahdrl-paper":
        kind = (paper.Learner, paper_settings.Settings)
    new, hyper_parameters = kind
    settings = settings_of(hyper_parameters, training.options, training.policy)
    if getattr(settings, "selection", None) == "serial":
        new = SerialLearner
    try:
        return new(training.learners, _shape(training.scenario), seed, settings), settings
    except MemoryError as error:
        raise InputError(
            f"--option replay={settings.replay}: does not fit into memory; choose a smaller one"
        ) from error


def _shape(scenario: Scenario) -> Shape:
    return Shape(
        services=tuple(service.name for service in scenario.services),
        clients=scenario.clients.count,
        cores=scenario.clients.cores,
        rounds=scenario.rounds,
        reward_bases={service.name: service.reward_base for service in scenario.services},
    )


@contextmanager
def open_table(
    training: Training, learners: Sequence[str], episode: int, seed: int, shelf: Shelf, workers: int
) -> Iterator[Table]:
    """Open a market of the scenario in which ``learners`` learn and the others play as the training prescribes."""
    scenario, services = training.scenario, []
    for service in training.scenario.services:
        if service.name in learners:
            service = service.model_copy(update={"policy": training.policy, "policy_options": {}, "checkpoint": None})
        elif training.rivals:
            drawn = int(stream(seed, "rival", episode, service.name).integers(len(training.rivals)))
            choice = PolicyChoice.parse(training.rivals[drawn])
            rival: dict[str, Any] = {"policy": choice.name, "policy_options": {}, "checkpoint": choice.checkpoint}
            service = service.model_copy(update=rival)
        services.append(service)
    scenario = scenario.model_copy(update={"services": tuple(services)})
    rivals = {s.name: build_policy(scenario, s) for s in scenario.services if s.name not in learners}
    federation = build_federation(scenario, seed, shelf, workers=workers)
    try:
        yield Table(build_market(scenario, seed, federation), tuple(learners), rivals)
    finally:
        federation.close()
