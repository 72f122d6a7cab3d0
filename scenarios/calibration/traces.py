"""Traces of real training for the surrogate: exploring runs to fit to, and runs of held-out policies to test with.

One JSON file per run; it is used again only for the scenario and images that it was made of.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from des.market import Market
from des.mechanisms.mechanism import DEFAULT
from fl.backends import REAL
from fl.calibration.curve_fit import Recorder, Trace
from flmarket.core.cores import usable_cores
from flmarket.core.errors import InputError
from flmarket.core.files import require_folder, write_durably
from flmarket.core.tracking import counting
from learning.episode import play
from learning.explorer import Explorer
from learning.policy import Policy
from scenarios.build import (
    Shelf,
    build_federation,
    build_policy,
    population_spec,
    service_spec,
    timeline,
)
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import ClientBehaviour, Scenario, Service
from scenarios.loader import digest

EXPLORER = "explorer"
_NEVER = 2.0  # a target accuracy that no service reaches: traces continue after the scenario's target


def stripped(scenario: Scenario) -> Scenario:
    """Return the part of a scenario that traces depend on: one service for each data set, trained for real.

    Accuracy is measured on all test images: a curve stands for that on validation images, too. Whatever ``_play`` does
    not pass to the market has its default, so that changing it leaves the traces as they are.
    """
    first: dict[str, Service] = {}
    for service in scenario.services:
        first.setdefault(service.dataset, service)
    measured = {"backend": REAL.name, "eval_samples": None, "validation": 0.0}
    return scenario.model_copy(
        update={
            "services": tuple(map(PolicyChoice("random").seat, first.values())),
            "training": scenario.training.model_copy(update=measured),
            "clients": scenario.clients.model_copy(update={"behaviour": ClientBehaviour(), "availability": None}),
            "market": scenario.market.model_copy(update={"mechanism": DEFAULT, "options": {}}),
            "dqi": "published",
            "description": "",
            "sweep": {},
            "runs": (),
            "interventions": (),
        }
    )


def traces(
    scenario: Scenario,
    policy: str,  # of all services; ``EXPLORER``, or a policy's name
    dqi: str,  # which they see
    seed: int,
    folder: Path,
    shelf: Shelf,
) -> dict[str, Trace]:
    """Return the traces of one run, by data set, from its file or by training."""
    if policy != EXPLORER:
        services = tuple(service.model_copy(update={"policy": policy}) for service in scenario.services)
        scenario = scenario.model_copy(update={"services": services, "dqi": dqi})
    key = {"scenario": digest(scenario, shelf.digests(scenario)), "policy": policy, "seed": seed}
    path = folder / f"{policy}-{dqi}-{seed:04d}.json"
    found = read(path, key)
    if found is None:
        found = _play(scenario, policy, seed, shelf)
        write(path, found, key)
    return {trace.dataset: trace for trace in found}


def write(path: Path, found: list[Trace], key: dict[str, object]) -> None:
    """Write a run's traces, and what they depend on, into one file: it is either whole or absent."""
    require_folder(path.parent)
    content = {"key": key, "traces": [asdict(trace) for trace in found]}
    write_durably(path, (json.dumps(content) + "\n").encode())


def read(path: Path, key: dict[str, object]) -> list[Trace] | None:
    """Return the traces of a file, or None if there is no such file or it was made for another key."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = [Trace(**entry) for entry in content["traces"]]
        return found if content["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: is not a file of traces: {error}; remove it, or choose another --out") from error


def _play(scenario: Scenario, policy: str, seed: int, shelf: Shelf) -> list[Trace]:
    federation = build_federation(scenario, seed, shelf, workers=usable_cores())
    try:
        recorder = Recorder(
            federation,
            {
                service.name: Trace(service.dataset, policy, seed, federation.accuracy(service.name))
                for service in scenario.services
            },
        )
        exploring = policy == EXPLORER
        specs = [
            replace(spec, target_accuracy=_NEVER, policy=policy, privileged=exploring or spec.privileged)
            for spec in (service_spec(scenario, service) for service in scenario.services)
        ]
        policies: dict[str, Policy] = {}
        for m, service in enumerate(scenario.services):
            built = build_policy(scenario, service)
            # Services of one run have different tastes.
            policies[service.name] = Explorer(built.context, seed + m) if exploring else built
        market = Market(population_spec(scenario), specs, timeline(scenario), scenario.rounds, recorder, seed)
        with counting(f"{policy} seed {seed}", scenario.rounds) as step:
            play(market, policies, [lambda report: step(report.round)])
        return list(recorder.traces.values())
    finally:
        federation.close()
