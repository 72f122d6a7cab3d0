"""Parameters of networks for tests."""

from collections.abc import Sequence

import numpy as np

from fl.arrays import Float32Array
from learning.mahdrl.stacked_networks import Mlp


def constant(network: Mlp, outputs: Sequence[float]) -> Float32Array:
    """Parameters of a network that gives ``outputs`` whatever it sees."""
    parameters = np.zeros((1, network.parameters), dtype=np.float32)
    parameters[0, -len(outputs) :] = outputs
    return parameters
