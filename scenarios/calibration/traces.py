"""Traces of real training for the surrogate: exploring runs to fit to, and runs of held-out policies to test with."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from des.market import Market
from fl import traces as files
from fl.backends import REAL
from fl.traces import Recorder, Trace
from fl.tracking import counting
from learning.explorer import Explorer
from learning.play import play
from learning.policy import Policy
from scenarios.build import (
    Shelf,
    build_federation,
    build_policy,
    population_spec,
    service_spec,
    timeline,
)
from scenarios.file.clients import ClientBehaviour
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario, Service
from scenarios.loader import digest

EXPLORER = "explorer"
_NEVER = 2.0  # a target accuracy that no service reaches: traces continue after the scenario's target


def stripped(scenario: Scenario) -> Scenario:
    """Return the part of a scenario that traces depend on: one service for each data set, trained for real.

    Accuracy is measured on all test images: a curve stands for that on validation images, too.
    """
    first: dict[str, Service] = {}
    for service in scenario.services:
        first.setdefault(service.dataset, service)
    services = tuple(map(PolicyChoice("random").seat, first.values()))
    measured = {"backend": REAL.name, "eval_samples": None, "validation": 0.0}
    training = scenario.training.model_copy(update=measured)
    clients = scenario.clients.model_copy(update={"behaviour": ClientBehaviour()})
    return scenario.model_copy(
        update={
            "services": services,
            "training": training,
            "clients": clients,
            "dqi": "published",
            "description": "",
            "sweep": {},
        }
    )


def explore(scenario: Scenario, seed: int, folder: Path, shelf: Shelf, workers: int) -> dict[str, Trace]:
    """Return the traces of one exploring run, by data set, from its file or by training."""
    return _traces(scenario, EXPLORER, seed, folder, shelf, workers)


def held_out(
    scenario: Scenario, policy: str, dqi: str, seed: int, folder: Path, shelf: Shelf, workers: int
) -> dict[str, Trace]:
    """Return the traces of one run in which all services use ``policy`` and see that kind of DQI; see ``explore``."""
    services = tuple(service.model_copy(update={"policy": policy}) for service in scenario.services)
    changed = scenario.model_copy(update={"services": services, "dqi": dqi})
    return _traces(changed, policy, seed, folder, shelf, workers)


def _traces(scenario: Scenario, policy: str, seed: int, folder: Path, shelf: Shelf, workers: int) -> dict[str, Trace]:
    key: Mapping[str, Any] = {
        "scenario": digest(scenario, shelf.digests(scenario)),
        "policy": policy,
        "seed": seed,
    }
    path = folder / f"{policy}-{scenario.dqi}-{seed:04d}.json"
    found = files.read(path, key)
    if found is None:
        found = _play(scenario, policy, seed, shelf, workers)
        files.write(path, found, key)
    return {trace.dataset: trace for trace in found}


def _play(scenario: Scenario, policy: str, seed: int, shelf: Shelf, workers: int) -> list[Trace]:
    federation = build_federation(scenario, seed, shelf, workers=workers)
    try:
        traces = {
            service.name: Trace(service.dataset, policy, seed, federation.accuracy(service.name))
            for service in scenario.services
        }
        recorder = Recorder(federation, traces)
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
    finally:
        federation.close()
    return list(traces.values())
