"""Local training with a proximal term, by any trainer: a step of the trainer's, then one back to where it began."""

from dataclasses import replace

import numpy as np

from fl.arrays import Float32Array
from fl.training.regime import Regime
from fl.training.tasks import ClientData, Trainer


def train_near(
    trainer: Trainer,
    start: Float32Array,  # [P] the global model; not changed
    client: ClientData,
    regime: Regime,
    weight: float,  # mu
) -> tuple[Float32Array, float]:
    """Return what ``Trainer.train`` does, of the loss plus ``mu / 2`` times the squared distance to the start.

    The trainer takes plain steps. What is added to each is the momentum, ``momentum * (w_t - w_(t-1))``, which makes
    the same steps as a velocity does, and the gradient of the proximal term, ``mu * (w_t - w_0)``. The loss is returned
    without the term, as that of other rules.
    """
    plain = replace(regime, momentum=0.0)
    before = now = start
    total = 0.0
    for epoch in client.order:
        for first in range(0, len(epoch), regime.batch_size):
            batch = epoch[first : first + regime.batch_size]
            order = np.arange(len(batch), dtype=np.int32)[None]
            stepped, loss = trainer.train(now, client.pixels[batch], client.labels[batch], order, plain)
            with np.errstate(over="ignore", invalid="ignore"):  # of a model that diverges
                pull = regime.momentum * (now - before) - regime.learning_rate * weight * (now - start)
                before, now = now, stepped + pull
            total += loss * len(batch)
    return now, total / client.order.size
