"""FedAvg: the new global model is the mean of the clients' models, weighted by data size (McMahan et al., 2017)."""

from collections.abc import Sequence

import numpy as np

from fl.arrays import Float32Array


def fedavg(models: Sequence[Float32Array], sizes: Sequence[int]) -> Float32Array:
    """Return the mean of flat parameter vectors [P], weighted by the data sizes D they were trained on.

    Summed one after another in double precision, so that the result has the same bits on any number of threads. Models
    that have diverged give a mean that is not finite, without a warning: the caller checks.
    """
    if not models or len(models) != len(sizes):
        raise ValueError(f"{len(models)} models and {len(sizes)} sizes: FedAvg needs one size for each of some models")
    total = float(sum(sizes))
    if total <= 0:
        raise ValueError("FedAvg needs clients that hold data")
    mean = np.zeros_like(models[0], dtype=np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf
        for model, size in zip(models, sizes, strict=True):
            mean += (size / total) * model
    return mean.astype(np.float32)
