"""The workload of all peers as tensors, the plain loop's model, and a clock that reports the result."""

import json
import os
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plain import Client, LeNet, evaluate, train_client

__all__ = ["BATCH", "CHOSEN", "RATE", "WARM_UP", "Clock", "LeNet", "evaluate", "read", "rounds", "train_client"]

CHOSEN, BATCH, RATE = 5, 32, 0.05
WARM_UP = 1
"""Rounds that do not count: in its first round, a framework may load and compile things."""


@cache
def read() -> tuple[list[Client], Client]:
    """Return the clients' images and the test images from the file that engine.py wrote.

    Each process reads the file itself, so that no framework needs to send images.
    """
    with np.load(os.environ["FLMARKET_WORKLOAD"]) as file:
        parts = {name: torch.from_numpy(file[name]) for name in file.files}
    clients = list(zip(parts["images"], parts["labels"], strict=True))
    return clients, (parts["test_images"], parts["test_labels"])


def rounds() -> int:
    """Return the number of rounds that count."""
    return int(sys.argv[1])


class Clock:
    """Records when each round ends; the first ``WARM_UP`` rounds do not count."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, float]] = []

    def round_ended(self) -> None:
        self._ends.append((time.perf_counter(), time.process_time()))

    def report(self, accuracy: float) -> None:
        """Print the result as the last line, for engine.py."""
        start, *_, end = self._ends[WARM_UP - 1 :]
        print(json.dumps({"seconds": end[0] - start[0], "cpu": end[1] - start[1], "accuracy": accuracy}))
