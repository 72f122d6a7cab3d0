"""FedAvg: the new global model is the mean of the clients' models, weighted by data size (McMahan et al., 2017)."""

from collections.abc import Iterable, Sequence

import numpy as np

from fl.arrays import Float32Array


def fedavg(models: Iterable[Float32Array], sizes: Sequence[int]) -> Float32Array:
    """Return the mean of flat parameter vectors [P], weighted by the data sizes D they were trained on.

    Summed one after another in double precision, so that the result has the same bits on any number of threads. Of
    models that come one at a time, none is kept. Models that have diverged give a mean that is not finite, without a
    warning: the caller checks.
    """
    total = float(sum(sizes))
    if total <= 0:
        raise ValueError("FedAvg needs clients that hold data")
    mean = np.zeros(1)
    for model, size in zip(models, sizes, strict=True):
        with np.errstate(invalid="ignore"):  # inf - inf
            mean = mean + (size / total) * model
    return mean.astype(np.float32)
