"""Traces of real training for the surrogate: exploring runs to fit to, and runs of held-out policies to test with.

One JSON file per run; it is used again only for the scenario and images that it was made of.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from des.market import Market
from des.mechanism import DEFAULT
from des.observation import Observation, Offer
from fl.arithmetic.ordered_sums import standardised
from fl.arithmetic.streams import stream
from fl.backends import REAL
from fl.calibration.curve_fit import RecordedRun, Recorder
from flmarket.core.errors import InputError
from flmarket.core.files import require_folder, write_durably
from flmarket.core.installation import usable_cores
from flmarket.core.tracking import counting
from learning.client_selection.selection import fill_budget
from learning.play_round import play
from learning.policy import Policy, PolicyContext
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


_RECIPES: tuple[tuple[float, float, float], ...] = (
    (0.0, 0.0, 0.0),  # random
    (3.0, -1.0, 0.0),  # much data
    (1.0, -3.0, 0.0),  # even labels
    (0.0, 0.0, -3.0),  # cheap
    (-2.0, 1.0, 0.0),  # little data and uneven labels: no sensible policy; it bounds the curve from below
)
"""Weights of data size, EMD and bid; other runs draw theirs."""


class Explorer(Policy):
    """Ranks clients by weighted data size, EMD, bid and noise; weights, budget and number of clients vary by run.

    Not registered: no service's.
    """

    summary = "random tastes, for calibration"
    privileged: ClassVar[bool] = True

    def __init__(self, context: PolicyContext, seed: int) -> None:
        """Draw the taste of one run from (seed, service). Of six seeds in a row, five use the weights of a recipe."""
        super().__init__(context)
        rng = stream(seed, "explore", context.service)
        kind = seed % (len(_RECIPES) + 1)
        drawn = rng.normal(size=3) * rng.choice([1.0, 3.0])
        self._weights = np.array(_RECIPES[kind]) if kind < len(_RECIPES) else drawn
        self._noise = float(rng.choice([0.1, 0.5, 1.5]))
        self._least, self._most = np.sort(rng.uniform(0.2, 1.0, 2))
        if rng.random() < 0.5:
            self._least = self._most = 1.0
        self._clients = int(rng.choice([2, 3, 4, 6, context.clients, context.clients, context.clients]))

    def act(self, observation: Observation) -> Offer:
        """Offer their bids to the clients of its taste, within the part of the budget that it draws for this round."""
        hidden = observation.privileged
        assert hidden is not None  # noqa: S101 - the market gives it to every policy that declares it
        rng = observation.rng()
        keys = np.stack([standardised(key) for key in (hidden.data_size, hidden.emd, observation.own_bids)])
        score = self._weights @ keys + self._noise * rng.standard_normal(observation.clients)
        budget = observation.budget * rng.uniform(self._least, self._most)
        offer = fill_budget(np.argsort(-score), observation.own_bids, budget, available=observation.available)
        return Offer(offer.clients[: self._clients], offer.payments[: self._clients])


def stripped(scenario: Scenario) -> Scenario:
    """Return the part of a scenario that traces depend on: one service for each data set, trained for real.

    Accuracy is measured on all test images: a curve stands for that on validation images, too. Whatever ``_play`` does
    not pass to the market has its default, so that changing it leaves the traces as they are.
    """
    first: dict[str, Service] = {}
    for service in scenario.services:
        first.setdefault(service.dataset, service)
    groups = tuple(
        it.model_copy(update={"behaviour": type(it.behaviour)(), "services": None}) for it in scenario.clients.groups
    )
    clients = {"behaviour": ClientBehaviour(), "availability": None, "groups": groups}
    measured = {"backend": REAL.name, "eval_samples": None, "validation": 0.0}
    return scenario.model_copy(
        update={
            "services": tuple(map(PolicyChoice("random").seat, first.values())),
            "streams": (),
            "training": scenario.training.model_copy(update=measured),
            "clients": scenario.clients.model_copy(update=clients),
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
) -> dict[str, RecordedRun]:
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


def write(path: Path, found: list[RecordedRun], key: dict[str, object]) -> None:
    """Write a run's traces, and what they depend on, into one file: it is either whole or absent."""
    require_folder(path.parent)
    content = {"key": key, "traces": [asdict(trace) for trace in found]}
    write_durably(path, (json.dumps(content) + "\n").encode())


def read(path: Path, key: dict[str, object]) -> list[RecordedRun] | None:
    """Return the traces of a file, or None if there is no such file or it was made for another key."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = [RecordedRun(**entry) for entry in content["traces"]]
        return found if content["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: is not a file of traces: {error}; remove it, or choose another folder") from error


def _play(scenario: Scenario, policy: str, seed: int, shelf: Shelf) -> list[RecordedRun]:
    federation = build_federation(scenario, seed, shelf, workers=usable_cores())
    try:
        recorder = Recorder(
            federation,
            {
                service.name: RecordedRun(service.dataset, policy, seed, federation.accuracy(service.name))
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
