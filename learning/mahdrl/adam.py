"""Adam on the stacked parameters of all agents at once."""

import numpy as np
import torch
from torch import Tensor

from learning.mahdrl.networks import Tensors


class Adam:
    """Adam (Kingma & Ba, ICLR 2015) with torch's defaults. Its whole state is three arrays, for checkpoints.

    Attributes:
        first, second: [A, P] running means of the gradient and of its square.
    """

    def __init__(self, parameters: Tensor, learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.first, self.second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.steps = 0  # how many steps were taken

    def step(self, gradient: Tensor) -> None:
        """Move the parameters [A, P] against the gradient [A, P]."""
        self.steps += 1
        self.first.lerp_(gradient, 0.1)
        self.second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        corrected = 1.0 - 0.999**self.steps
        size = self.learning_rate / (1.0 - 0.9**self.steps)
        with torch.no_grad():
            self.parameters.addcdiv_(self.first, (self.second / corrected).sqrt_().add_(1e-8), value=-size)

    def state(self, prefix: str) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {
            f"{prefix}.first": self.first.numpy(),
            f"{prefix}.second": self.second.numpy(),
            f"{prefix}.steps": np.array([self.steps]),
        }

    def restore(self, prefix: str, state: Tensors) -> None:
        """Continue from a ``state``."""
        self.first.copy_(torch.from_numpy(state[f"{prefix}.first"]))
        self.second.copy_(torch.from_numpy(state[f"{prefix}.second"]))
        self.steps = int(state[f"{prefix}.steps"][0])
