"""The fused CPU path: SGD and evaluation of the paper's CNN and of dense networks, whole batches in one C++ call.

The extension ``fl._fused`` (``fl/_native``) is optional; without it callers use torch. All of its variants compute the
same floats on every processor (docs/reproducibility.md). Functions run on the calling thread and release the GIL.
Parameters are flat float32 vectors as of ``torch.nn.utils.parameters_to_vector``; images are uint8 pixels, or float32
features for dense networks.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from fl.arithmetic.draws import draw_key
from fl.arithmetic.native import extension, kernel_problem
from fl.arrays import AnyArray, ByteArray, Float32Array, Int32Array, Pixels
from fl.data.dataset import Shape
from fl.training.models import HIDDEN, initial_values
from flmarket.core.errors import InputError

ARITHMETIC = "fused"  # what logs call the arithmetic of all variants; the reference path's is ``reference``
SHAPES = (Shape(1, 28, 28), Shape(3, 32, 32))
"""The shapes of images that the CNN's kernel is written for; networks of fully connected layers take any."""
_ENVIRONMENT_VARIABLE = "FLMARKET_KERNEL"
_MAX_INPUTS = 2**24


_native: Any = extension()
_kernels: dict[str, int] = _native.kernels() if _native is not None else {}


@dataclass(frozen=True)
class Architecture:
    """A network the fused path knows, for images of one shape; the extension refuses what it cannot train.

    ``cnn`` is the paper's: two convolutions (6 and 16 maps, 5x5, each with ReLU and 2x2 max-pool), then 120, 84 and
    ``labels`` outputs. ``mlp`` has the given ``hidden`` widths, then ``labels`` outputs. ReLU between layers.
    """

    kind: Literal["cnn", "mlp"]
    labels: int
    hidden: tuple[int, ...] = ()
    shape: Shape = SHAPES[0]

    @property
    def widths(self) -> tuple[int, ...]:
        return (120, 84, self.labels) if self.kind == "cnn" else (*self.hidden, self.labels)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """The fan-in and the outputs of each layer that has weights and biases."""
        if self.kind == "mlp":
            return tuple(pairwise((self.inputs, *self.widths)))
        features = 16 * (((self.shape.height - 4) // 2 - 4) // 2) ** 2
        return (25 * self.shape.channels, 6), (25 * 6, 16), *pairwise((features, *self.widths))

    @property
    def parameter_count(self) -> int:
        return sum((inputs + 1) * outputs for inputs, outputs in self.layers)

    @property
    def inputs(self) -> int:
        return self.shape.channels * self.shape.height * self.shape.width


def kernels() -> tuple[str, ...]:
    """Return the kernels that this build has and this CPU can run, the fastest first; none without the extension."""
    return tuple(_kernels)


def available() -> bool:
    """Return whether the extension was built and this CPU can run it."""
    return bool(_kernels)


def obstacle(model: str, shape: Shape, hidden: Sequence[int] | None = None) -> str | None:
    """Return why the fused kernel cannot train a model (by name) on images of that shape here, or None if it can.

    ``hidden`` are the widths of the hidden layers of a user's own model, if it consists of such layers alone.
    """
    if model != "cnn" and model not in HIDDEN and hidden is None:
        return f"the fused kernel trains cnn, and networks of fully connected layers with ReLU between, not {model!r}"
    if problem := _shape_problem(model, shape):
        return problem
    return None if available() else f"the fused kernel {kernel_problem()}"


def kernel_name() -> str:
    """Return the name of the variant in use, e.g. ``fused-avx512``. All variants give the same bits."""
    if not _kernels:
        raise RuntimeError(f"the fused kernel {kernel_problem()}; use the reference path")
    forced = os.environ.get(_ENVIRONMENT_VARIABLE)
    if not forced:
        return next(iter(_kernels))
    if f"fused-{forced}" not in _kernels:
        known = ", ".join(name.removeprefix("fused-") for name in _kernels)
        raise InputError(f"{_ENVIRONMENT_VARIABLE}={forced}: this machine can run {known}")
    return f"fused-{forced}"


def initial_parameters(arch: Architecture, seed: int, *purpose: str | int) -> Float32Array:
    """Return the parameters [P] of a new model, the same as those of ``fl.training.networks.build``."""
    drawn = draw_key(seed, *purpose)
    parts: list[Float32Array] = []
    for inputs, outputs in arch.layers:
        for count in (inputs * outputs, outputs):  # weights, biases
            parts.append(initial_values(drawn, len(parts), count, inputs))
    return np.concatenate(parts)


def parameter_count(model: str, labels: int, shape: Shape) -> int | None:
    """Return how many parameters a model has, by name; None where it is none of those that have a kernel."""
    if model in HIDDEN:
        return Architecture("mlp", labels, HIDDEN[model], shape).parameter_count
    return Architecture("cnn", labels, shape=shape).parameter_count if model == "cnn" and shape in SHAPES else None


def train(
    arch: Architecture,  # the network
    parameters: Float32Array,  # [P] where to start from; left untouched
    pixels: Pixels,  # [n, height, width], or [n, channels, height, width], of ``arch.shape``
    labels: ByteArray,  # [n], each below ``arch.labels``
    # [epochs, samples] image numbers below n. An epoch walks its row in consecutive batches, the last of which may be
    # short; it need not name every image, so a client can train on its part of a shared data set.
    order: Int32Array,
    *,
    batch_size: int,  # images per step, any number from 1
    learning_rate: float,  # step length
    momentum: float,  # v = momentum * v + gradient; parameters -= learning_rate * v. 0 is plain SGD
    scale: float,  # multiplies pixels
    offset: float,  # added to scaled pixels
    kernel: str | None = None,  # one of ``kernels()`` instead of the one in use; for tests
) -> tuple[Float32Array, float]:
    """Train by SGD on softmax cross-entropy, as torch's SGD does with a fresh momentum state."""
    native, *call = _call(arch, parameters, pixels, labels, scale, offset, kernel)
    _check("order", order, np.int32, (None, None))
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    result = np.empty_like(parameters)
    epochs = order.shape[0]
    loss: float = native.train(*call, order, epochs, batch_size, learning_rate, momentum, result)
    return result, loss


def gradient(
    arch: Architecture,
    parameters: Float32Array,
    pixels: Pixels,
    labels: ByteArray,
    *,
    scale: float,
    offset: float,
    kernel: str | None = None,
) -> tuple[Float32Array, float]:
    """Return the gradient [P] of the mean loss over one batch of all n images, and that loss. See ``train``."""
    native, *call = _call(arch, parameters, pixels, labels, scale, offset, kernel)
    result = np.empty_like(parameters)
    loss: float = native.gradient(*call, result)
    return result, loss


def correct(
    arch: Architecture,
    parameters: Float32Array,
    pixels: Pixels,
    labels: ByteArray,
    *,
    scale: float,
    offset: float,
    kernel: str | None = None,
) -> int:
    """Return how many of the n images get their highest logit (the first, if several tie) at their label.

    Every image is judged by itself: the sum over parts of a data set is the count over the whole. Arguments and errors
    are those of ``train``.
    """
    native, *call = _call(arch, parameters, pixels, labels, scale, offset, kernel)
    hits: int = native.correct(*call)
    return hits


def elementary(
    # ``fma`` is a * b + c, rounded once, and ``exp`` the exponential, both float32; ``log`` the natural logarithm,
    # float64
    operation: Literal["fma", "exp", "log"],
    *operands: AnyArray,  # C-contiguous arrays of one shape: three for ``fma``, else one
    kernel: str | None = None,  # one of ``kernels()`` instead of the one in use
) -> AnyArray:
    """Return what an elementary operation of a kernel gives for each element; for tests of the kernel's arithmetic."""
    name = kernel_name() if kernel is None else kernel
    a, b, c = operands if operation == "fma" else operands * 3
    result = np.empty_like(a)
    _native.elementary(_kernels[name], operation, a, b, c, result)
    return result


def _call(
    arch: Architecture,
    parameters: Float32Array,
    pixels: Pixels,
    labels: ByteArray,
    scale: float,
    offset: float,
    kernel: str | None,
) -> tuple[Any, int, bool, int, int, Int32Array, Float32Array, Pixels, ByteArray, float, float]:
    """The extension and the arguments all its functions begin with, checked. It checks labels and lengths itself."""
    name = kernel_name() if kernel is None else kernel
    if name not in _kernels:
        raise ValueError(f"kernel must be one of {', '.join(_kernels)}, not {name!r}")
    _check("parameters", parameters, np.float32, (arch.parameter_count,))
    channels, height, width = arch.shape
    kind = np.float32 if arch.kind == "mlp" and pixels.dtype == np.float32 else np.uint8
    _check("pixels", pixels, kind, (None, height, width) if channels == 1 else (None, channels, height, width))
    _check("labels", labels, np.uint8, (len(pixels),))
    network = (arch.kind == "cnn", channels, arch.inputs, np.array(arch.widths, dtype=np.int32))
    return _native, _kernels[name], *network, parameters, pixels, labels, scale, offset


def _shape_problem(model: str, shape: Shape) -> str | None:
    """Return why the kernel cannot take images of that shape, or None if it can."""
    if model == "cnn" and shape not in SHAPES:
        return f"the fused kernel trains the cnn on images of {' or '.join(map(str, SHAPES))}, not {shape}"
    if model != "cnn" and not 1 <= shape.channels * shape.height * shape.width <= _MAX_INPUTS:
        return f"the fused kernel trains on images of 1 to {_MAX_INPUTS} numbers, not {shape}"
    return None


def _check(name: str, array: AnyArray, dtype: type[np.generic], shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless the array has that dtype and shape (None: any length from 1) and is C-contiguous."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be a NumPy array, not {type(array).__name__}")  # noqa: TRY004 (one kind of error)
    fits = array.ndim == len(shape) and all(
        length == wanted or (wanted is None and length > 0) for length, wanted in zip(array.shape, shape, strict=False)
    )
    if not fits:
        expected = ", ".join("n" if wanted is None else str(wanted) for wanted in shape)
        raise ValueError(f"{name} must have shape [{expected}], n at least 1, not {list(array.shape)}")
    if array.dtype != dtype:
        raise ValueError(f"{name} must be {np.dtype(dtype).name}, not {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
