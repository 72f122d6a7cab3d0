"""Multi-layer perceptrons as flat parameter vectors, stacked over agents: [A, P].

One batched matrix product serves all A agents, and a checkpoint is one tensor. The same forward pass runs on NumPy
arrays (acting) and on torch tensors (learning). On NumPy arrays its matrix products are exact ones
(``fl.arithmetic.ordered_sums``), so that an agent decides the same on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from fl.arithmetic.ordered_sums import exact_product
from fl.arrays import AnyArray, Float32Array

Tensors = Mapping[str, AnyArray]  # named arrays: what a checkpoint holds


@dataclass(frozen=True, slots=True)
class Mlp:
    """Fully connected layers with ReLU between them."""

    sizes: tuple[int, ...]  # widths of the input, each hidden layer and the output

    @property
    def parameters(self) -> int:
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(self.sizes))

    def initial(self, rng: Generator, agents: int = 1) -> Float32Array:
        """Draw initial parameters [A, P]: uniform in +-1/sqrt(fan-in), as ``torch.nn.Linear`` does."""
        parts = []
        for fan_in, fan_out in pairwise(self.sizes):
            bound = 1.0 / np.sqrt(fan_in)
            parts.append(rng.uniform(-bound, bound, size=(agents, (fan_in + 1) * fan_out)))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def forward(
        self,
        parameters: Any,  # [A, P], NumPy or torch
        x: Any,  # [A, n, inputs], of the same library
    ) -> Any:  # [A, n, outputs]; of NumPy arrays, in double precision
        """Apply the network of each agent to its own rows."""
        at, last = 0, len(self.sizes) - 2
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.sizes)):
            split, end = at + fan_in * fan_out, at + (fan_in + 1) * fan_out
            weights = parameters[:, at:split].reshape(-1, fan_in, fan_out)
            product = exact_product(x, weights) if isinstance(x, np.ndarray) else x @ weights
            x = product + parameters[:, None, split:end]
            if layer < last:
                x = np.maximum(x, 0) if isinstance(x, np.ndarray) else x.clip(min=0)
            at = end
        return x
