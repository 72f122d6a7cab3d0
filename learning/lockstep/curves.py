"""The surrogate's learning curves in many markets at once: arrays [B, M] over markets and services."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import SimpleNamespace

import numpy as np

from fl.arrays import BoolArray, FloatArray, IntArray
from fl.elementary import exp, log
from fl.native import extension
from fl.surrogate import Curve, Trained, follow, noise, noise_keys

_native = extension("follow")

FLAT = Curve(**dict.fromkeys([field.name for field in fields(Curve)], 0.5))
"""In the place of a service that a smaller market does not have; nothing is read from it."""


class Curves:
    """How far the services of all markets are on their curves.

    Attributes:
        accuracy: [B, M] that of the present ones.
        u: [B, M] the latent progress.
    """

    def __init__(
        self,
        curves: Sequence[Mapping[str, Curve]],  # [B] by service
        services: int,  # the most services that any market has
        rounds: int,  # the most rounds that any has
    ) -> None:
        self._names = [tuple(own) for own in curves]
        padded = [[*own.values(), *[FLAT] * (services - len(own))] for own in curves]
        self._curves = SimpleNamespace(
            **{
                it.name: np.array([[getattr(curve, it.name) for curve in row] for row in padded])
                for it in fields(Curve)
            }
        )
        self._columns = np.stack([getattr(self._curves, it.name) for it in fields(Curve)])
        shape = len(curves), services
        self.start: FloatArray = 1.0 - self._curves.start  # [B, M] the accuracy of the initial models
        self.accuracy, self.u = self.start.copy(), np.zeros(shape)
        self._luck = np.zeros(shape)
        self._noise = np.zeros((len(curves), rounds + 2, services))  # also of the round that a market would play next
        self._first = np.arange(len(curves)) * self._noise.shape[1]  # where that of each begins, as rows [M]

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets anew: draw their noise of all rounds."""
        services, rounds, rows = self.u.shape[1], self._noise.shape[1], np.array(which)
        keys = np.zeros((len(rows), services, 1, 2), dtype=np.uint32)
        alike: dict[tuple[str, ...], list[int]] = {}
        for place, b in enumerate(which):
            alike.setdefault(self._names[b], []).append(place)
        for names, places in alike.items():
            keys[places, : len(names)] = noise_keys([seeds[place] for place in places], names)
        self._noise[rows] = np.moveaxis(noise(keys, np.arange(rounds)), 1, 2)
        self._luck[rows] = self._noise[rows, 0]
        self.accuracy[rows], self.u[rows] = self.start[rows], 0.0

    def train(
        self,
        rounds: IntArray,  # [B] which round each market plays
        sums: Trained,  # what each service trains on, [B, M]; 0 for those that do not
    ) -> BoolArray:
        """Let all services train that have images; return which do, [B, M]."""
        trains: BoolArray = sums.samples > 0
        z = self._noise.reshape(-1, self.u.shape[1]).take(self._first + rounds, axis=0)
        if _native is not None:
            before, self.u, self.accuracy = self.u, self.u.copy(), self.accuracy.copy()
            _native.follow(self._columns, before, self._luck, z, *sums, self.u, self.accuracy)
            return trains
        of = Trained(*(np.where(trains, part, 1) for part in sums))
        u, accuracy = follow(self._curves, self.u, self._luck, z, of, np.sqrt)
        self.u, self.accuracy = np.where(trains, u, self.u), np.where(trains, accuracy, self.accuracy)
        return trains

    def losses(
        self,
        b: IntArray,  # [n] the market
        m: IntArray,  # [n] the service
        before: FloatArray,  # [B, M] the accuracy before the round
        emd: FloatArray,  # [n] of each client's data
    ) -> FloatArray:
        """Return the mean local loss of clients [n] of services ``m`` in markets ``b``."""
        c = self._curves
        base = (c.loss_0 + c.loss_error * log(1.0 - before))[b, m]
        loss: FloatArray = exp(base + c.loss_emd[b, m] * emd)
        return loss
