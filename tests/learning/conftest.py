"""Observations made by hand, and markets whose training is a formula, for the tests of ``learning``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.clients.data_tables import Group, PopulationSpec
from des.costs.linear import Linear
from des.market import Market
from des.mechanism import Mechanism
from des.observation import Observation, Privileged
from des.service import ServiceSpec
from des.timeline import Durations
from fl.arithmetic.streams import stream_key
from fl.data.dqi import PUBLISHED
from fl.training.jobs import Federation, TrainingJob, TrainingOutcome
from learning.policy import DataRanges, PolicyContext
from support.clients import changed

CLIENTS = PopulationSpec(
    cores=2,
    groups=(
        Group(
            count=20,
            data_sizes=(100, 200, 300, 400),
            emds=(0.4, 0.6, 0.8, 1.0),
            cost=Linear(per_sample=0.025, per_emd=1.0),
        ),
    ),
)
SERVICE = ServiceSpec(
    name="?",
    dataset="digits",
    labels=10,
    dqi=replace(PUBLISHED, eta1=0.1922),
    budget=20_000_000,
    target_accuracy=0.97,
    reward_base=100.0,
    local_epochs=1,
    policy="by hand",
)


class FormulaFederation(Federation):
    """Trains nothing: accuracy is ``1 - 0.9 * exp(-progress)``; a client adds ``speed * (D / 400) ** 2`` to it."""

    kernels: Mapping[str, str] = {}

    def __init__(self, speed: float = 0.05) -> None:
        self.speed = speed
        self.progress: dict[str, float] = {}
        self.closed = False

    def accuracy(self, service: str) -> float:
        return 1 - 0.9 * float(np.exp(-self.progress.get(service, 0.0)))

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        assert not self.closed
        outcomes = {}
        for service in dict.fromkeys(job.service for job in jobs):
            own = [job for job in jobs if job.service == service]
            gain = self.speed * sum((job.size / 400) ** 2 for job in own)
            self.progress[service] = self.progress.get(service, 0.0) + gain
            accuracy = self.accuracy(service)
            outcomes[service] = TrainingOutcome(accuracy, np.array([1 - accuracy + job.emd for job in own]))
        return outcomes

    def state(self) -> dict[str, Any]:
        return {name: np.array([progress]) for name, progress in self.progress.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.progress = {name: float(progress[0]) for name, progress in state.items()}

    def close(self) -> None:
        self.closed = True


def market_of(
    names: Sequence[str | ServiceSpec] = ("alpha", "beta", "gamma"),
    *,
    seed: int = 0,
    rounds: int = 6,
    speed: float = 0.05,
    target: float = 0.97,
    budget: int = 20_000_000,
    targets: Mapping[str, float] | None = None,
    mechanism: Mechanism | None = None,
    **clients: Any,
) -> Market:
    specs = [
        replace(SERVICE, name=name, target_accuracy=(targets or {}).get(name, target), budget=budget)
        if isinstance(name, str)
        else name
        for name in names
    ]
    timeline = Durations(seconds_per_sample=0.01, upload_seconds=0.5)
    return Market(changed(CLIENTS, **clients), specs, timeline, rounds, FormulaFederation(speed), seed, None, mechanism)


def first_observation_of(
    bids: Sequence[Sequence[float]],
    dqi: Sequence[float] | None = None,
    *,
    budget: float = 20.0,
    round_: int = 1,
    cores: int = 1,
    accuracy: float = 0.1,
    privileged: Privileged | None = None,
) -> Observation:
    """The view of service "s0"; its bids are the first row."""
    table = np.array(bids, dtype=np.float64)
    return Observation(
        round=round_,
        rounds=80,
        service="s0",
        services=tuple(f"s{m}" for m in range(len(table))),
        dqi=np.array(dqi, dtype=np.float64) if dqi is not None else np.full(table.shape[1], 0.5),
        bids=table,
        budget=budget,
        cores=cores,
        accuracy=accuracy,
        target_accuracy=0.97,
        key=stream_key(0, "policy", "s0", round_),
        privileged=privileged,
    )


def observation_of(
    bids: Sequence[float],
    dqi: Sequence[float] | None = None,
    *,
    budget: float = 10.0,
    data_size: Sequence[int] | None = None,
    emd: Sequence[float] | None = None,
    seed: int = 0,
) -> Observation:
    """The view of the second of two services, "own"; the other one's bids are nobody's business here."""
    own = np.array(bids, dtype=np.float64)
    hidden = None
    if data_size is not None:
        hidden = Privileged(np.array(data_size), np.array(emd if emd is not None else np.zeros(len(own))))
    seen = first_observation_of([own[::-1] * 100, own], dqi, budget=budget, privileged=hidden)
    names = {"service": "own", "services": ("other", "own"), "key": stream_key(seed, "policy", "own", 1)}
    return replace(seen, rounds=10, target_accuracy=0.9, **names)


RANGES = DataRanges(cost=(0.0, 8.0), dqi=(0.1, 0.9))  # so a client half-way costs 4 and has a DQI of .5


def context_of(clients: int = 3, *, services: int = 1, cores: int = 1) -> PolicyContext:
    return PolicyContext("s0", services, clients, cores, 80, 20.0, 0.97, 100.0, ranges=lambda: RANGES)


# Session-wide, because Hypothesis runs a test many times in one go. They hold no state.
@pytest.fixture(scope="session")
def make_market() -> Callable[..., Market]:
    """``make_market(["alpha"], seed=3, cores=1)``: the paper's clients, three services, unless told otherwise."""
    return market_of


@pytest.fixture(scope="session")
def make_observation() -> Callable[..., Observation]:
    return first_observation_of


@pytest.fixture(scope="session")
def make_context() -> Callable[..., PolicyContext]:
    return context_of


@pytest.fixture(scope="session")
def observe() -> Callable[..., Observation]:
    """``observe(bids, dqi, budget=..., data_size=..., emd=..., seed=...)``."""
    return observation_of


@pytest.fixture(scope="session")
def context() -> PolicyContext:
    options: dict[str, Any] = {"services": 2, "clients": 5, "cores": 1, "rounds": 10, "ranges": lambda: RANGES}
    return PolicyContext("own", budget=10.0, target_accuracy=0.9, reward_base=100.0, **options)


@pytest.fixture
def seen() -> Observation:
    """A round of three services and 20 clients, at any bids and DQI."""
    rng = np.random.default_rng(0)
    return first_observation_of(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
