"""The real runner, over learning that is a formula: no data, no networks."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

import scenarios.build as build
from fl.training.jobs import Federation, TrainingOutcome
from flmarket.core.crash import guarded
from scenarios.running import time_limit
from scenarios.running.worker import Worker

time_limit.is_own = lambda file: file == "mine.py"  # not this file, which never returns


class Formula(Federation):
    kernels: Mapping[str, str] = {}

    def __init__(self, services):
        self.images = dict.fromkeys(services, 0)

    def accuracy(self, service):
        return round(1 - 0.9 / (1 + self.images[service] / 900), 6)

    def train_round(self, round_, jobs):
        losses = {}
        for job in jobs:
            self.images[job.service] += job.size
            losses.setdefault(job.service, []).append(1.0)
        return {name: TrainingOutcome(self.accuracy(name), np.array(values)) for name, values in losses.items()}

    def state(self):
        return {name: np.array([images]) for name, images in self.images.items()}

    def restore(self, state):
        self.images = {name: int(state[name][0]) for name in self.images}

    def close(self):
        pass


build.build_federation = lambda scenario, *_, **__: Formula([s.name for s in scenario.services])
build.Shelf.get = lambda *_: SimpleNamespace(official=True, digests={})
sys.exit(guarded(Worker().serve))
