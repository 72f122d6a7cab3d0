"""flmarket: federated-learning services compete for clients under monetary budgets, round after round.

    import flmarket

    results = flmarket.run("quickstart", policies=["random", "hqfa"], seeds=3)
    results.summary()
    results.plot("accuracy")

This module is the face of the five packages behind it: what a notebook or a script needs. Importing it is cheap; torch
and pandas are imported by the functions that need them.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

try:
    from fl.errors import InputError, RunError
    from fl.installation import require_one_place, version
except ImportError as error:
    raise ImportError(f"flmarket needs its own package 'fl', but Python finds another one: {error}") from error

require_one_place()

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from des.allocation import allocate
    from des.mechanism import Book, Clearing, Mechanism
    from des.mechanisms import mechanism
    from des.records import Feedback, Observation, Offer
    from fl.datasets import dataset
    from fl.model_names import model
    from learning.environment import MarketEnv
    from learning.policy import Policy, PolicyContext, policy
    from learning.selection import fill_budget
    from learning.service_env import ServiceEnv
    from scenarios.file.schema import Scenario
    from scenarios.judging.frames import Results
    from scenarios.plugins import load_plugin
    from scenarios.running.batch import BatchFailed

__version__ = version()

__all__ = [
    "BatchFailed",
    "Book",
    "Clearing",
    "Feedback",
    "InputError",
    "Mechanism",
    "Observation",
    "Offer",
    "Policy",
    "PolicyContext",
    "Results",
    "RunError",
    "Scenario",
    "allocate",
    "dataset",
    "fill_budget",
    "load",
    "load_plugin",
    "mechanism",
    "model",
    "parallel_env",
    "policy",
    "read",
    "run",
    "service_env",
    "train",
]

_ELSEWHERE = {
    "BatchFailed": "scenarios.running.batch",
    "Book": "des.mechanism",
    "Clearing": "des.mechanism",
    "Feedback": "des.records",
    "Mechanism": "des.mechanism",
    "Observation": "des.records",
    "Offer": "des.records",
    "Policy": "learning.policy",
    "PolicyContext": "learning.policy",
    "Results": "scenarios.judging.frames",
    "Scenario": "scenarios.file.schema",
    "allocate": "des.allocation",
    "dataset": "fl.datasets",
    "fill_budget": "learning.selection",
    "load_plugin": "scenarios.plugins",
    "mechanism": "des.mechanisms",
    "model": "fl.model_names",
    "policy": "learning.policy",
}
"""Where a name comes from that is imported when it is first used."""

Place = str | PathLike[str]
"""A file, a directory, or (for scenarios) the name of a built-in one."""


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load(scenario: Place, overrides: Mapping[str, Any] | None = None) -> "Scenario":
    """Read and check a scenario.

    Args:
        scenario: a TOML file, or the name of a built-in scenario.
        overrides: values to change, by dotted key, services by name: ``{"services.mnist.budget": 15}``.

    Raises:
        InputError: it cannot be read, or something in it is wrong; names every problem with its line.
    """
    from scenarios.loader import load as load_scenario

    return load_scenario(_text(scenario), overrides or {})


def run(
    scenario: "Place | Scenario | Sequence[Place | Scenario]",
    policies: "str | type[Policy] | Iterable[str | type[Policy]]" = (),
    seeds: int | Iterable[int] = 1,
    *,
    rounds: int | None = None,
    jobs: int = 1,
    workers: int | None = None,
    engine: Literal["local", "ray"] = "local",
    ray_address: str | None = None,
    out: Place = "runs",
    fresh: bool = False,
    fail_fast: bool = False,
    progress: bool = True,
) -> "Results":
    """Run scenarios, and return what their runs came to.

    Runs that are already complete in ``out`` are read, not played again; an interrupted one resumes.

    Args:
        scenario: a scenario, a file, the name of a built-in scenario, or several of these; each may have a sweep.
        policies: for every service; one run each. A name, a name with the file of a trained agent
            (``mahdrl:agent.safetensors``), or a class of your own. None: the policies that the scenario names.
        seeds: one run each; a number N means the seeds 0 to N - 1.
        rounds: to play, instead of the scenario's.
        jobs: runs at a time, each in a process of its own.
        workers: training threads of each run; cores divided by jobs if not given.
        engine: this machine, or a Ray cluster.
        ray_address: the cluster's; a local one is started if not given.
        out: the folder for run directories.
        fresh: start over, even if a run is complete.
        fail_fast: end the batch when a run fails.
        progress: report progress and notes on stderr.

    Raises:
        InputError: a scenario, a policy, a data set or a directory cannot be used.
        BatchFailed: some runs failed; says which, and ``read(*error.complete)`` gives the others.
    """
    from scenarios.judging.frames import Results
    from scenarios.loader import with_rounds
    from scenarios.running.batch import play_batch

    scenarios = [_scenario(one) for one in ([scenario] if _is_one(scenario) else scenario)]
    if rounds is not None:
        scenarios = [with_rounds(one, rounds) for one in scenarios]
    names = [policies] if isinstance(policies, str | type) else list(policies)
    played = play_batch(
        scenarios,
        [name if isinstance(name, str) else _registered(name) for name in names],
        range(seeds) if isinstance(seeds, int) else list(seeds),
        Path(out).expanduser(),
        jobs=jobs,
        workers=workers,
        engine=engine,
        ray_address=ray_address,
        fresh=fresh,
        fail_fast=fail_fast,
        progress=progress,
    )
    return Results([run.directory.path for run in played.complete])


def read(*sources: Place) -> "Results":
    """Return the complete runs among and below the given directories.

    Raises:
        InputError: there is none, or a log is damaged.
    """
    from scenarios.judging.frames import Results

    return Results([Path(source).expanduser() for source in sources])


def train(
    scenario: "Place | Scenario",
    out: Place,
    *,
    policy: Literal["mahdrl", "mahdrl-paper"] = "mahdrl",
    episodes: int = 200,
    seed: int = 0,
    rotate: bool = False,
    together: int = 1,
    rivals: Sequence[str] = (),
    evaluate_every: int = 25,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    workers: int | None = None,
) -> Path:
    """Train an agent; return its file, for ``policies=["mahdrl:FILE"]`` or a service's ``checkpoint``.

    Args:
        scenario: the market to learn in, without a sweep; its ``training.backend`` decides what is trained on.
        out: NAME.safetensors; log and saved states go beside it.
        policy: what is trained.
        episodes: markets to learn from.
        seed: the training's seed.
        rotate: services take turns to learn, against the others' policies.
        together: with ``rotate``, services that learn in the same episode.
        rivals: policies that the others draw from in each episode; none means those of the scenario.
        evaluate_every: episodes between two evaluations.
        options: hyper-parameters that differ from the defaults (docs/mahdrl.md).
        resume: continue a training that was stopped.
        workers: training threads; all cores if not given.

    Raises:
        InputError: the scenario, an option, or what is at ``out`` cannot be used.
        RunError: a model's training failed.
    """
    from scenarios.build import Shelf
    from scenarios.running.batch import threads
    from scenarios.train import place, plan_training
    from scenarios.train import run as run_training

    market = _scenario(scenario)
    training = plan_training(
        market,
        policy,
        episodes=episodes,
        rotate=rotate,
        together=together,
        rivals=rivals,
        evaluate_every=evaluate_every,
        options=options or {},
        command=f"flmarket.train({market.name!r}, policy={policy!r}, episodes={episodes}, seed={seed})",
    )
    path = place(Path(out).expanduser(), seed, [seed])
    run_training(training, seed, path, Shelf(), resume=resume, workers=threads(1, workers))
    return path


def parallel_env(scenario: "Place | Scenario", seed: int = 0, **settings: Any) -> "MarketEnv":
    """Return a scenario's market as a PettingZoo environment, in which every service is an agent (extra ``rl``).

    Args:
        scenario: without a sweep.
        seed: decides the seeds of the episodes; ``reset(seed=s)`` plays the market of seed s.
        settings: see ``scenarios.environments.parallel_env``: ``flat``, ``gamma``, ``payment_limit``, ``workers``.

    Raises:
        InputError: the scenario, or a data set that it needs, cannot be used.
    """
    from scenarios.environments import parallel_env as make

    return make(_scenario(scenario), seed, **settings)


def service_env(scenario: "Place | Scenario", service: str, seed: int = 0, **settings: Any) -> "ServiceEnv":
    """Return a Gymnasium environment for one service; its rivals play the scenario's policies (extra ``rl``).

    Args:
        scenario: without a sweep.
        service: the name of the service that learns.
        seed: decides the seeds of the episodes; ``reset(seed=s)`` plays the market of seed s.
        settings: as in ``parallel_env``.

    Raises:
        InputError: the scenario, or a data set that it needs, cannot be used.
        ValueError: the scenario has no such service.
    """
    from scenarios.environments import service_env as make

    return make(_scenario(scenario), service, seed, **settings)


def _is_one(scenario: "Place | Scenario | Sequence[Place | Scenario]") -> "TypeIs[Place | Scenario]":
    """Return whether this is one scenario, not several."""
    from scenarios.file.schema import Scenario

    return isinstance(scenario, str | PathLike | Scenario)


def _scenario(given: "Place | Scenario") -> "Scenario":
    return load(given) if isinstance(given, str | PathLike) else given


def _text(place: Place) -> str:
    """Return a place as text, so that names of built-in scenarios and paths are told apart as on the command line."""
    text = str(place)
    return str(Path(text).expanduser()) if text.startswith("~") else text


def _registered(policy: "type[Policy]") -> str:
    """Return the name under which a class of the caller's own plays, registering it if it has none."""
    from learning.policy import register_class

    return register_class(policy)
