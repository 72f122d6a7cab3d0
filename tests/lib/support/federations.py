"""Federations whose training is a formula: no images, no networks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fl.training.jobs import Federation, TrainingJob, TrainingOutcome


class FormulaFederation(Federation):
    """Accuracy grows with the images trained on so far."""

    kernels: Mapping[str, str] = {}

    def __init__(self, services: Sequence[str]) -> None:
        self._images = dict.fromkeys(services, 0)

    def accuracy(self, service: str) -> float:
        return round(1 - 0.9 / (1 + self._images[service] / 900), 6)

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        losses: dict[str, list[float]] = {}
        for job in jobs:
            self._images[job.service] += job.size
            losses.setdefault(job.service, []).append(1.0)
        return {name: TrainingOutcome(self.accuracy(name), np.array(values)) for name, values in losses.items()}

    def state(self) -> dict[str, np.ndarray]:
        return {name: np.array([images]) for name, images in self._images.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self._images = {name: int(images[0]) for name, images in state.items()}

    def close(self) -> None:
        pass


class StubFederation(Federation):
    """Trains nothing. A service starts at ``start`` and gains ``gain`` with every round in which it has jobs.

    The "loss" of a client is its index plus a half, so that a test sees whose it is.
    """

    kernels: Mapping[str, str] = {}

    def __init__(self, start: float = 0.1, gain: float = 0.1) -> None:
        self.gain = gain
        self.start = start
        self.models: dict[str, float] = {}
        self.asked: list[tuple[int, list[TrainingJob]]] = []

    def accuracy(self, service: str) -> float:
        return self.models.get(service, self.start)

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        self.asked.append((round_, list(jobs)))
        outcomes = {}
        for service in dict.fromkeys(job.service for job in jobs):
            self.models[service] = min(1.0, round(self.accuracy(service) + self.gain, 9))
            losses = np.array([job.client + 0.5 for job in jobs if job.service == service])
            outcomes[service] = TrainingOutcome(self.models[service], losses)
        return outcomes

    def state(self) -> dict[str, Any]:
        return {name: np.array([accuracy]) for name, accuracy in self.models.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.models = {name: float(accuracy[0]) for name, accuracy in state.items()}

    def close(self) -> None: ...
