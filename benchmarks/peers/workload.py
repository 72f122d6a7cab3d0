"""A federated-learning job that every framework reads from the same files, and a clock that reports the result."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plain import Client, LeNet, evaluate, federated_round, train_client

__all__ = ["WARM_UP", "Clock", "Job", "evaluate", "federated_round", "job", "network", "read", "train_client"]

WARM_UP = 1
"""Rounds that the clock leaves out: in its first round, a framework may load and compile things."""


@dataclass(frozen=True)
class Job:
    """What is trained; the network sees pixel * scale + offset."""

    model: str
    labels: int
    rounds: int
    chosen: int  # clients a round
    epochs: int
    batch: int
    rate: float
    scale: float
    offset: float


def femnist(labels: int, shape: Sequence[int]) -> nn.Module:
    """Return the network of FLUTE's CNN_FEMNIST, without its dropout."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3), nn.ReLU(),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), 128), nn.ReLU(),
        nn.Linear(128, labels),
    )  # fmt: skip


MODELS: Mapping[str, Callable[[int, Sequence[int]], nn.Module]] = {
    "cnn": lambda labels, shape: LeNet(shape[0], shape[1], labels),
    "logistic": lambda labels, shape: nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), labels)),
    "femnist": femnist,
}
"""The networks by their names in flmarket."""


def _file(name: str) -> Path:
    return Path(os.environ["FLMARKET_WORKLOAD"]) / name


@cache
def job() -> Job:
    """Return the job that is played."""
    return Job(**json.loads(_file("job.json").read_text()))


@cache
def read() -> tuple[list[Client], Client]:
    """Return the clients' images and the test images. Each process reads them, so that no framework sends images."""
    with np.load(_file("images.npz")) as file:
        pixels, labels, split = (torch.from_numpy(file[name]) for name in ("pixels", "labels", "split"))

    def some(which: Any) -> Client:
        return pixels[which].float().mul_(job().scale).add_(job().offset), labels[which].long()

    return [some(own) for own in json.loads(_file("partition.json").read_text()).values()], some(split == 1)


def network() -> nn.Module:
    """Return a new network."""
    return MODELS[job().model](job().labels, read()[1][0].shape[1:])


class Clock:
    """Records when each round ends, and with what accuracy; the time of the first ``WARM_UP`` does not count."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, float]] = []
        self._accuracies: list[float] = []

    def round_ended(self, accuracy: float) -> None:
        self._ends.append((time.perf_counter(), time.process_time()))
        self._accuracies.append(accuracy)

    def report(self, package: str) -> None:
        """Print the result as the last line, for ``contest.py``."""
        start, *_, end = self._ends[WARM_UP - 1 :]
        took = {"seconds": end[0] - start[0], "cpu": end[1] - start[1]}
        print(json.dumps(took | {"accuracies": self._accuracies, "version": version(package)}))
