"""The tasks of real training: a service's data set, its training regime, and the images that evaluate its models."""

from dataclasses import dataclass
from typing import NamedTuple

from fl.arrays import Labels, Pixels
from fl.data.registry import Dataset
from fl.training.regime import Regime
from flmarket.core.errors import RunError


@dataclass(frozen=True, slots=True)
class Task:
    """The learning task of one service.

    Attributes:
        service: its name.
        dataset: its data set.
        regime: how its clients train.
        eval_samples: the most images that each evaluation looks at; None for all.
        validation: the share of training images that accuracy is measured on, and no client has (``fl.data.split``); 0:
        it
            is measured on test images.
    """

    service: str
    dataset: Dataset
    regime: Regime
    eval_samples: int | None = None
    validation: float = 0.0


class Images(NamedTuple):
    """Images to evaluate a model on: pixels [n, C, H, W] and labels [n]."""

    pixels: Pixels
    labels: Labels


class ModelFailed(RunError):  # noqa: N818 - names what happened
    """A plug-in's model raised an exception while it was trained or evaluated."""
