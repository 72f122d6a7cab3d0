"""The surrogate's learning curves in many markets at once: arrays [B, M] over markets and services."""

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace

import numpy as np

from fl.arithmetic.native import extension
from fl.arrays import FloatArray, IntArray
from fl.surrogate.learning_curves import Curve, Trained, follow, noise, noise_keys
from learning.lockstep.market_kinds import MarketKinds

_native = extension("follow")


class Curves:
    """The services of all markets on their curves."""

    def __init__(self, kinds: MarketKinds) -> None:
        self._kinds = kinds
        columns: dict[str, FloatArray] = {
            field.name: kinds.per_service(
                [[getattr(curve, field.name) for curve in own.values()] for own in kinds.curves], absent=0.5
            )
            for field in fields(Curve)
        }
        self._curves, self._columns = SimpleNamespace(**columns), np.stack(list(columns.values()))
        self._start: FloatArray = 1.0 - columns["start"]  # [B, M] the accuracy of the initial models
        self.accuracy = self._start.copy()  # [B, M] that of the present ones
        self.u = np.zeros(self.accuracy.shape)  # [B, M] the latent progress
        self._luck = np.zeros(self.accuracy.shape)
        markets, services = self.accuracy.shape
        rounds = int(kinds.rounds.max()) + 2  # round 0 stands for luck; the last is observed, never played
        self._noise = np.zeros((markets, rounds, services))

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds: draw their noise of all rounds."""
        rows = np.array(which)
        keys = np.zeros((len(rows), self.accuracy.shape[1], 1, 2), dtype=np.uint32)
        for kind in np.unique(self._kinds.of[rows]).tolist():
            places = np.flatnonzero(self._kinds.of[rows] == kind).tolist()
            names = list(self._kinds.curves[kind])
            keys[places, : len(names)] = noise_keys([seeds[place] for place in places], names)
        self._noise[rows] = np.moveaxis(noise(keys, np.arange(self._noise.shape[1])), 1, 2)
        self._luck[rows] = self._noise[rows, 0]
        self.accuracy[rows], self.u[rows] = self._start[rows], 0.0

    def train(
        self,
        rounds: IntArray,  # [B] which round each market plays
        sums: Trained,  # what each service trains on, [B, M]; 0 for those that do not
    ) -> None:
        """Let all services train that have images."""
        z = self._noise[np.arange(len(rounds)), rounds]
        if _native is not None:
            before, self.u, self.accuracy = self.u, self.u.copy(), self.accuracy.copy()
            _native.follow(self._columns, before, self._luck, z, *sums, self.u, self.accuracy)
            return
        trains = sums.samples > 0
        of = Trained(*(np.where(trains, part, 1) for part in sums))
        u, accuracy = follow(self._curves, self.u, self._luck, z, of, np.sqrt)
        self.u, self.accuracy = np.where(trains, u, self.u), np.where(trains, accuracy, self.accuracy)
