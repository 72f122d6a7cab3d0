"""The tasks of real training: a service's data set and regime, what one client trains on, and what trains it."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from fl.arrays import Float32Array, Int32Array, Labels, Pixels
from fl.data.registry import Dataset
from fl.training.aggregator import Aggregator
from fl.training.aggregators.fedavg import FedAvg
from fl.training.regime import Regime
from flmarket.core.errors import RunError


@dataclass(frozen=True, slots=True)
class Task:
    """The learning task of one service."""

    service: str  # its name
    dataset: Dataset
    regime: Regime  # how its clients train
    eval_samples: int | None = None  # the most images that each evaluation looks at; None for all
    # the share of training images that accuracy is measured on, and no client has (``fl.data.validation_split``); 0: it
    # is measured on test images
    validation: float = 0.0
    aggregator: Aggregator = field(default_factory=FedAvg)  # makes a new model of updates; the service's own


class Images(NamedTuple):
    """Images to evaluate a model on: pixels [n, C, H, W] and labels [n]."""

    pixels: Pixels
    labels: Labels


class ClientData(NamedTuple):
    """One client's images and the order in which it visits them."""

    pixels: Pixels
    labels: Labels
    order: Int32Array


def visiting_order(size: int, epochs: int, rng: Generator) -> Int32Array:
    """Draw the order [epochs, size] in which a client visits its images."""
    return np.array([rng.permutation(size) for _ in range(epochs)], dtype=np.int32)


class Trainer(Protocol):
    """Trains and evaluates one architecture on flat parameter vectors, which travel between clients and server.

    Used by one thread at a time.
    """

    def train(
        self,
        parameters: Float32Array,  # [P] the global model; not changed
        pixels: Pixels,  # [n, C, H, W] the client's images
        labels: Labels,  # [n]
        order: Int32Array,  # [epochs, n] the order in which each epoch visits the images
        regime: Regime,  # batch size, learning rate and momentum of the SGD
    ) -> tuple[Float32Array, float]:
        """Return the locally trained parameters [P] and the mean loss over all samples as they were seen."""
        ...

    def correct(self, parameters: Float32Array, pixels: Pixels, labels: Labels) -> int:
        """Return how many images the model labels correctly."""
        ...


Use = Literal["training", "evaluation"]


class Traits(NamedTuple):
    """What decides which code can train a model, and how."""

    # the widths of the hidden layers of a network of fully connected ones; None of any other
    hidden: tuple[int, ...] | None
    draws: frozenset[Use] = frozenset()  # in what it draws random numbers


class ModelFailed(RunError):  # noqa: N818 - names what happened
    """A plug-in's model raised an exception while it was trained or evaluated."""
