"""Parts of both learners: networks, Adam and replay buffers, stacked over A agents, and the reasons of a decision.

The parameters of A agents are one array, [A, P]: a batched matrix product serves them all. The same forward pass runs
on NumPy arrays (playing) and on torch tensors (learning). On NumPy arrays its matrix products are exact ones
(``fl.arithmetic.ordered_sums``), so that an agent decides the same on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from des.observation import Offer
from fl.arithmetic.ordered_sums import exact_product
from fl.arrays import Float32Array, FloatArray, IntArray
from learning.training.agent_files import Tensors

if TYPE_CHECKING:  # an agent that plays needs no torch
    from torch import Tensor


def fill(arrays: Tensors, state: Tensors) -> None:
    """Copy a saved state into the arrays of the same names."""
    for name, values in arrays.items():
        values[...] = state[name]


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


class Adam:
    """Adam (Kingma & Ba, ICLR 2015) with torch's defaults. Its whole state is three arrays, for checkpoints."""

    def __init__(self, parameters: "Tensor", learning_rate: float) -> None:
        self._parameters, self._learning_rate = parameters.detach(), learning_rate
        # [A, P] running means of the gradient and of its square
        self._first, self._second = parameters.new_zeros(parameters.shape), parameters.new_zeros(parameters.shape)
        self._steps = np.zeros(1, dtype=np.int64)

    def step(self, gradient: "Tensor") -> None:
        """Move the parameters [A, P] against the gradient [A, P]."""
        self._steps += 1
        steps = int(self._steps[0])
        self._first.lerp_(gradient, 0.1)
        self._second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        corrected = self._second / (1.0 - 0.999**steps)
        size = self._learning_rate / (1.0 - 0.9**steps)
        self._parameters.addcdiv_(self._first, corrected.sqrt_().add_(1e-8), value=-size)

    def state(self, prefix: str) -> Tensors:
        return {
            f"{prefix}.first": self._first.numpy(),
            f"{prefix}.second": self._second.numpy(),
            f"{prefix}.steps": self._steps,
        }


class Replay:
    """The last ``capacity`` transitions of each of A agents, in ring buffers."""

    def __init__(self, agents: int, capacity: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.capacity = capacity
        # name -> [A, capacity, *shape]
        self.fields: dict[str, Float32Array] = {
            name: np.zeros((agents, capacity, *shape), dtype=np.float32) for name, shape in shapes.items()
        }
        # [A] transitions ever stored; the next one is put at ``stored % capacity``
        self.stored: IntArray = np.zeros(agents, dtype=np.int64)

    def add(self, agent: int, **values: npt.ArrayLike) -> None:
        """Store one transition. A field that is shorter than its row is padded with zeros."""
        at = int(self.stored[agent]) % self.capacity
        for name, field in self.fields.items():
            rows, value = field[agent], np.asarray(values[name], dtype=np.float32)
            if value.shape == rows.shape[1:]:
                rows[at] = value
            else:
                rows[at] = 0.0
                rows[at, : len(value)] = value
        self.stored[agent] += 1

    def sample(
        self,
        rng: Generator,
        batch: int,  # transitions of each
        times: int = 1,  # how many batches for each agent; they follow each other
    ) -> dict[str, Float32Array]:
        """Draw batches uniformly, with replacement, for each agent: name -> [A * times, batch, *shape].

        Every agent must hold at least one transition.
        """
        agents = np.repeat(np.arange(len(self.stored)), times)[:, None]
        held = np.minimum(self.stored, self.capacity)
        rows = rng.integers(held[agents], size=(len(agents), batch))
        return {name: values[agents, rows] for name, values in self.fields.items()}

    def state(self) -> Tensors:
        held = min(int(self.stored.max(initial=0)), self.capacity)
        return {f"replay.{name}": values[:, :held] for name, values in self.fields.items()} | {
            "replay.stored": self.stored
        }

    def restore(self, state: Tensors) -> None:
        self.stored[...] = state["replay.stored"]
        fill(self.state(), state)


@dataclass(frozen=True, slots=True)
class Reasons:
    """A trained agent's decision and the numbers that it follows from, for explanations afterwards."""

    offer: Offer  # what was decided
    q: FloatArray  # [C] how the critic rates each client
    # [C] the chance to be served that the agent saw in an offer of the bid; None if it does not weigh that
    at_bid: FloatArray | None = None
    at_offer: FloatArray | None = None  # [k] the same for what it offered
