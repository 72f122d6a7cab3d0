"""What a learner credits its decisions with: advantages or credit in hindsight, as its settings say."""

from collections.abc import Mapping, Sequence

import numpy as np

from fl.arrays import FloatArray
from learning.mahdrl.credit import Baseline, Sizes, advantages, differences, progress
from learning.mahdrl.hindsight import Lived, Usual
from learning.mahdrl.networks import Tensors
from learning.mahdrl.settings import Settings


class Credits:
    """What is usual for each service in each market, and so what a decision is worth."""

    def __init__(self, services: int, rounds: int, settings: Settings) -> None:
        self._settings = settings
        self._baseline, self._sizes = Baseline(services, rounds), Sizes(services)
        self._usual = Usual(services, rounds)

    def of(
        self,
        rows: Mapping[str, int],  # each service's
        accuracies: Mapping[str, Sequence[float]],  # [n] of each service, after each round
        lived: Lived | None,  # what is known of the episode now; without it, ``hindsight`` gives no credit
    ) -> dict[str, FloatArray]:
        """Return the credit [n] of each service's rounds in an episode, and take the episode in."""
        if not self._settings.hindsight:
            return self._advantages(rows, accuracies)
        if lived is None:
            return {}
        return {name: self._usual.credit(row, lived.curves[name], lived.rounds[name]) for name, row in rows.items()}

    def _advantages(self, rows: Mapping[str, int], accuracies: Mapping[str, Sequence[float]]) -> dict[str, FloatArray]:
        """Return the credit from what each service usually reaches; none in its first episode."""
        s = self._settings
        deviations, weights, found = {}, {}, {}
        for name, row in rows.items():
            rounds = len(accuracies[name])
            weights[name] = self._baseline.errors(row)[:rounds] if s.weighted else np.ones(rounds)
            deviations[name] = self._baseline.deviations(row, progress(accuracies[name]))
        if s.difference:
            deviations = differences(deviations)
        for name, row in rows.items():
            if (deviation := deviations[name]) is None:
                continue
            found[name] = advantages(deviation, weights[name], horizon=s.horizon, scale=s.scale)
            if s.gain:
                gains = found[name] - s.scale * np.concatenate([[0.0], deviation[:-1]])
                found[name] = self._sizes.scaled(row, gains)
        return found

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {**self._baseline.state(), **self._sizes.state(), **self._usual.state()}

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        for part in (self._baseline, self._sizes, self._usual):
            part.restore(state)
