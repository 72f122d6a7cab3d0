"""``flmarket train``: from a scenario to trained agents."""

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from des.mechanisms import create as create_mechanism
from fl.backends import BACKENDS
from fl.errors import InputError
from learning.checks import more_than_one_offer
from learning.mahdrl import learner
from learning.mahdrl.checkpoint import DESCRIPTION, TENSORS
from learning.mahdrl.paper import algorithm as paper
from learning.mahdrl.paper import settings as paper_settings
from learning.mahdrl.paper.serial_learner import SerialLearner
from learning.mahdrl.plan import Plan
from learning.mahdrl.selves import EVERY, ITSELF
from learning.mahdrl.settings import Settings
from learning.mahdrl.shape import Shape
from learning.mahdrl.training import Learner, Table, train
from learning.mahdrl.training_log import Row
from scenarios.baselines import baselines
from scenarios.build import Shelf, known_curve
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.hyper_parameters import settings_of
from scenarios.loader import digest
from scenarios.logs.outside import require_outside_runs
from scenarios.plugins import plugins_of
from scenarios.running.provenance import git_revision, versions
from scenarios.seats import require_no_switches, require_one_point
from scenarios.suite.reserved import require_outside
from scenarios.training import PolicyName, Training, learned_rivals, open_table


def plan_training(
    scenarios: Sequence[Scenario],  # parameters without a comment: see ``Training``
    policy: PolicyName,
    *,
    episodes: int = 200,  # how often a market is played to learn from it
    rotate: bool = False,
    together: int = 1,  # with ``rotate``, services that learn in the same episode; 0: a number drawn anew in each
    rivals: Sequence[str] = (),
    evaluate_every: int = 25,  # episodes between two evaluations
    options: Mapping[str, Any],
    command: str,
) -> Training:
    """Return what to train.

    Exploration ends half-way, after 100 episodes at the latest; in several markets, where there is more to explore,
    after a quarter of the episodes.
    """
    require_outside(scenarios)
    unnamed = [scenario.model_copy(update={"name": "", "description": ""}) for scenario in scenarios]
    for place, scenario in enumerate(unnamed):
        if scenario in unnamed[:place]:
            first = scenarios[unnamed.index(scenario)].name
            raise InputError(
                f"scenario {scenarios[place].name!r} is there twice, as {first!r}; leave one out, as all markets are "
                "played equally often"
            )
    if policy not in get_args(PolicyName):
        raise InputError(f"policy {policy!r} cannot be trained; choose from {', '.join(get_args(PolicyName))}")
    for name, number in {"episodes": episodes, "together": together, "evaluate_every": evaluate_every}.items():
        least = 0 if name == "together" else 1
        if not isinstance(number, int) or number < least:
            raise InputError(f"{name} = {number!r}: must be an integer of at least {least}")
    if len(scenarios) > 1 and policy != "mahdrl":
        raise InputError(f"policy {policy!r} can only be trained in one market; with several, train mahdrl")
    if isinstance(rivals, str):
        raise InputError(f"rivals = {rivals!r}: must be a list of policies")
    if ITSELF in rivals and policy != "mahdrl":
        raise InputError(f"--rivals {ITSELF}: only mahdrl keeps what it was; leave it out for {policy}")
    for rival in rivals:
        if rival == ITSELF:
            continue
        choice = PolicyChoice.parse(rival, "--rivals")
        if choice.checkpoint is not None and not choice.takes("checkpoint"):
            raise InputError(f"--rivals {rival}: policy {choice.name!r} takes no checkpoint")
    if ITSELF in rivals and episodes <= EVERY:
        raise InputError(
            f"--rivals {ITSELF}: the first earlier self is that of episode {EVERY}; raise --episodes above it"
        )
    if set(rivals) == {ITSELF}:
        raise InputError(f"--rivals {ITSELF}: at first there is no earlier self; name another rival, too")
    if together != 1 and not rotate:
        raise InputError("--together is the number of services that learn in the same turn; add --rotate")
    plan = Plan(
        episodes=episodes,
        epsilon_episodes=max(1, min(100, episodes // 2) if len(scenarios) == 1 else episodes // 4),
        evaluate_every=evaluate_every,
        together=together,
    )
    return Training(tuple(scenarios), policy, options, plan, rotate, tuple(rivals), command)


def place(out: Path, seed: int, seeds: Sequence[int]) -> Path:
    """Return the file of one seed's agent: ``out`` with the suffix that agents have, numbered if there are several."""
    if out.name in ("", ".."):
        raise InputError(f"--out {str(out)!r}: must name a file, NAME{TENSORS}")
    stem = out.with_suffix("") if out.suffix in (TENSORS, DESCRIPTION) else out
    found = stem.with_name(f"{stem.name}-seed{seed}{TENSORS}" if len(seeds) > 1 else f"{stem.name}{TENSORS}")
    require_outside_runs(found)
    return found


def run(
    training: Training,  # what to train on what
    seed: int,  # the training's seed
    out: Path,  # file of the agent; see ``learning.mahdrl.training.train``
    shelf: Shelf,  # gives the data sets
    *,
    resume: bool = False,  # continue a training that was interrupted
    workers: int = 1,  # threads that train clients; results do not depend on it
    report: Callable[[Row], None] = lambda _: None,  # called with every row of the training log
) -> None:
    """Train one agent and write it to ``out``."""
    if not resume:
        _require_free(out)
    learners = training.learners
    for scenario in training.scenarios:
        require_one_point(scenario, "each scenario of a training is", "give one value in a file of your own")
        _require_mechanism(scenario)
    _require_seats(training)
    plan = replace(training.plan, seed=seed, seats=learners if training.rotate else ((),) * len(learners))
    new, settings = new_learner(training, seed)
    shared = getattr(settings, "share", False)
    provenance: dict[str, Any] = {
        "policy": training.policy,
        "agents": None if shared else list(learners[0]),
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
        "torch_cpu": _torch_cpu(),
        "git": git_revision(),
    }

    earlier = new.earlier if isinstance(new, learner.Learner) else None

    def opened(market: int, episode: int, market_seed: int, seats: Sequence[str]) -> AbstractContextManager[Table]:
        return open_table(training, market, seats, episode, market_seed, shelf, workers, earlier)

    levels = None
    if not any(BACKENDS[it.training.backend].trains for it in training.scenarios):  # else it takes minutes
        levels = partial(baselines, training.scenarios, learners, opened, plan)
    train(new, opened, plan, out, provenance, about, resume=resume, report=report, baselines=levels)


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


def _torch_cpu() -> str:
    """Return which of its code torch chose for this CPU (``AVX512``): the agent's last bits depend on it."""
    from torch.backends.cpu import get_cpu_capability  # only training needs torch

    return str(get_cpu_capability())


def _require_free(out: Path) -> None:
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
    together = training.plan.together
    most = max(len(names) for names in training.learners)
    if together > most:
        raise InputError(f"--together {together}: only {most} services learn; choose fewer")
    for scenario, names in zip(training.scenarios, training.learners, strict=True):
        alone = training.rotate and together < len(scenario.services)
        if len(names) < len(scenario.services) or alone:
            return
    if training.rivals:
        raise InputError("--rivals: all services learn, so there are no rivals; add --rotate")


def new_learner(training: Training, seed: int) -> tuple[Learner, Settings | paper_settings.Settings]:
    """Return a learner that has learned nothing yet, and its settings."""
    shapes = [_shape(scenario) for scenario in training.scenarios]
    settings: Any
    if training.policy == "mahdrl":
        settings = settings_of(Settings, training.options, training.policy)
        _require_possible(training, settings)
        make: Callable[[], Learner] = partial(
            learner.Learner, training.learners, shapes, seed, settings, selves=ITSELF in training.rivals
        )
    else:
        settings = settings_of(paper_settings.Settings, training.options, training.policy)
        kind = SerialLearner if settings.selection == "serial" else paper.Learner
        make = partial(kind, training.learners[0], shapes[0], seed, settings)
    try:
        return make(), settings
    except MemoryError as error:
        sizes = [name for name in ("replay", "members") if hasattr(settings, name)]
        raise InputError(
            f"--option {' or '.join(f'{name}={getattr(settings, name)}' for name in sizes)}: does not fit into memory; "
            "choose a smaller one"
        ) from error


def _require_possible(training: Training, settings: Settings) -> None:
    """Refuse hyper-parameters that do not go together, or not with what is trained on."""
    if ITSELF in training.rivals and not settings.share:
        raise InputError(f"--option share=false: an earlier self is one network; leave out --rivals {ITSELF}")
    if len(training.scenarios) > 1 and not settings.share:
        raise InputError("--option share=false: services of several markets have one network; leave it out")
    if settings.curve and not settings.context:
        raise InputError("--option curve=true: a learning curve is part of what an agent sees with context=true")
    if not settings.hindsight:
        return
    # What it ignores: the others are on by default.
    ignored = [f"{name}=true" for name in ("gain", "difference") if getattr(settings, name)]
    ignored += [name for name in ("horizon", "scale", "weighted") if name in training.options]
    if ignored:
        raise InputError(f"--option hindsight=true: credit comes from learning curves alone; leave out {ignored[0]}")
    if any(BACKENDS[scenario.training.backend].trains for scenario in training.scenarios):
        raise InputError(
            "--option hindsight=true: needs learning curves, and this trains models; add --backend noiseless"
        )


def _shape(scenario: Scenario) -> Shape:
    return Shape(
        services=tuple(service.name for service in scenario.services),
        clients=scenario.clients.count,
        cores=scenario.clients.cores,
        rounds=scenario.rounds,
        reward_bases={service.name: service.reward_base for service in scenario.services},
        curves={service.name: known_curve(scenario, service) for service in scenario.services},
    )
