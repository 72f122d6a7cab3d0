"""The replay buffers of all agents: ring buffers in arrays with one row for each agent."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from fl.arrays import Float32Array, IntArray
from learning.mahdrl.networks import Tensors


class Replay:
    """Keeps the last ``capacity`` transitions of each of A agents."""

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
            rows, given = field[agent], np.asarray(values[name], dtype=np.float32)
            if given.shape == rows.shape[1:]:
                rows[at] = given
            else:
                rows[at] = 0.0
                rows[at, : len(given)] = given
        self.stored[agent] += 1

    @property
    def held(self) -> IntArray:
        """The number of transitions in each agent's buffer, [A]."""
        return np.minimum(self.stored, self.capacity)

    def sample(
        self,
        rng: Generator,  # draws them
        batch: int,  # transitions of each
        times: int = 1,  # how many batches for each agent; they follow each other
    ) -> dict[str, Float32Array]:
        """Draw batches uniformly, with replacement, for each agent: name -> [A * times, batch, *shape].

        Every agent must hold at least one transition.
        """
        agents = np.repeat(np.arange(len(self.stored)), times)[:, None]
        rows = rng.integers(self.held[agents], size=(len(agents), batch))
        return {name: values[agents, rows] for name, values in self.fields.items()}

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        held = int(self.held.max(initial=0))
        state = {f"replay.{name}": values[:, :held] for name, values in self.fields.items()}
        return {**state, "replay.stored": self.stored}

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self.stored[...] = state["replay.stored"]
        for name, values in self.fields.items():
            saved = state[f"replay.{name}"]
            values[:, : saved.shape[1]] = saved
