"""The models that services can train, by name. Light: checking a scenario needs the names, not torch."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fl.arithmetic.draws import words
from fl.arrays import Float32Array, UInt32Array
from fl.data.dataset import FeatureShape, Shape
from flmarket.core.errors import InputError
from flmarket.core.plugins import Registry

if TYPE_CHECKING:
    from torch.nn import Module

HIDDEN: Mapping[str, tuple[int, ...]] = {"logistic": (), "mlp": (200, 200)}
"""Widths of the hidden layers of the built-in models whose layers are all fully connected."""

CONVOLUTIONAL = ("cnn", "resnet8")

CNN_SHORTEST = 8
"""Pixels of a side: the ``cnn`` sees at least 16 x 16, of a smaller image mostly the border that fills these up."""


class ModelError(InputError):
    """A built-in model does not fit the images; the message says what to do."""


def require_fit(name: str, shape: Shape) -> None:
    """Raise if images are too small for a built-in model, or are none, and it has convolutions.

    Raises:
        ModelError: they are.
    """
    if name in CONVOLUTIONAL and isinstance(shape, FeatureShape):
        raise ModelError(f'model {name!r} needs images, not {shape}; choose model = "logistic" or "mlp"')
    if name == "cnn" and min(shape.height, shape.width) < CNN_SHORTEST:
        raise ModelError(
            f"model 'cnn' needs images of at least {CNN_SHORTEST} x {CNN_SHORTEST} pixels, not {shape}; enlarge them, "
            'or choose model = "mlp" or "resnet8"'
        )


def initial_values(
    drawn: UInt32Array,  # the model's keyed stream
    place: int,  # the place of the weights or biases among those of the model, from 0
    count: int,  # how many they are
    inputs: int,  # the fan-in: inputs of one output
) -> Float32Array:
    """Return the initial weights or biases [count] of a linear layer or convolution of a built-in model.

    The distribution is torch's default: uniform within +-1 / sqrt(fan-in) (He et al., "Delving deep into rectifiers",
    ICCV 2015, with a = sqrt(5)). The numbers come from the keyed stream, because torch's generator, and the order in
    which torch draws from it, may change with its version.
    """
    # 24 bits, as many as a float32 has: exact until the product with the bound is rounded.
    part = (words(drawn, count, 0, place) >> np.uint32(8)) * 2.0**-23 - 1.0
    return np.asarray(inputs**-0.5 * part, dtype=np.float32)


def _problem(plugin: Any) -> str | None:
    return None if callable(plugin) else f"{plugin!r} cannot be called"


MODELS: "Registry[Callable[..., Module]]" = Registry(
    "model",
    "flmarket.models",
    {
        "cnn": "fl.training.networks:cnn",
        "logistic": "fl.training.networks:logistic",
        "mlp": "fl.training.networks:mlp",
        "resnet8": "fl.training.networks:resnet8",
    },
    _problem,
)
"""All models, by name: ``(labels: int)`` or ``(labels: int, shape: Shape)`` to a module."""

model = MODELS.decorator
"""Return a decorator that registers a model, whose name then works as ``model = "..."`` in a scenario.

The model is a function of the number of labels and, if it has a parameter ``shape``, of the images' shape
(``fl.data.dataset.Shape``), so that one model fits data sets of all shapes:

    @flmarket.model("wide")
    def wide(labels, shape):
        channels, height, width = shape
        inputs = channels * height * width
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, labels))

It returns a ``torch.nn.Module`` that maps images to logits [n, labels], and is tried before it is used
(``fl.training.trial``). What it draws from torch's, NumPy's or Python's generator is seeded for each client. Only
parameters travel between clients and server: buffers must not change in training (``BatchNorm``'s do; use
``GroupNorm``), and an image's logits must not depend on the others of its batch.
"""
