"""The models that services train, by name, as plain ``torch.nn.Module``s on images [n, channels, height, width].

A user's own model is a function registered by ``flmarket.model``, or by an entry point of an installed package in the
group ``flmarket.models``.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from itertools import pairwise
from threading import Lock

import torch
from torch import Tensor, nn

from fl.arithmetic.draws import draw_key
from fl.arithmetic.streams import stream_key
from fl.data.dataset import Shape
from fl.training.models import BUILTIN, HIDDEN, MODELS, initial_values, require_fit
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import PluginError


class HalveByMax(nn.Module):
    """2 x 2 max pooling with stride 2: ``MaxPool2d(2)``, and without gradients three maxima over strided slices.

    These give the same numbers several times as fast, but their gradient is another one where values are equal: it is
    shared, while that of ``MaxPool2d``, and of the fused kernel, goes to the first of them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Halve the last two dimensions, which must be even."""
        if torch.is_grad_enabled():
            return nn.functional.max_pool2d(x, 2)
        rows = torch.maximum(x[..., ::2, :], x[..., 1::2, :])
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def cnn(labels: int, shape: Shape) -> nn.Module:
    """The paper's network: "two convolution layers and three full-connected layers", in LeNet's sizes.

    Images whose sides do not come out even get a border of zeros, the mean of all pixels.

    Raises:
        ModelError: they are too small.
    """
    require_fit("cnn", shape)
    height, width = _even_side(shape.height), _even_side(shape.width)
    down, right = height - shape.height, width - shape.width
    border = [nn.ZeroPad2d((right // 2, right - right // 2, down // 2, down - down // 2))] if down or right else []
    features = 16 * (height // 4 - 3) * (width // 4 - 3)
    return nn.Sequential(
        *border,
        nn.Conv2d(shape.channels, 6, 5), nn.ReLU(), HalveByMax(),
        nn.Conv2d(6, 16, 5), nn.ReLU(), HalveByMax(),
        nn.Flatten(),
        nn.Linear(features, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, labels),
    )  # fmt: skip


def _even_side(side: int) -> int:
    """Return the next side that is even before both halvings: 16, 20, 24, 28 (MNIST's), 32, ..."""
    return max(16, -(-side // 4) * 4)


def mlp(labels: int, shape: Shape) -> nn.Module:
    """A perceptron with two hidden layers of 200, a common small baseline in federated learning."""
    return _dense(HIDDEN["mlp"], labels, shape)


def logistic(labels: int, shape: Shape) -> nn.Module:
    """Logistic regression: one fully connected layer, and a loss that is convex in its parameters."""
    return _dense(HIDDEN["logistic"], labels, shape)


def _dense(hidden: Sequence[int], labels: int, shape: Shape) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise((shape.channels * shape.height * shape.width, *hidden, labels)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def hidden_widths(module: nn.Module) -> tuple[int, ...] | None:
    """Return the widths of the hidden layers of a network that is nothing but layers as ``mlp`` has; else None."""
    parts = list(module) if type(module) is nn.Sequential else []
    linear = [part for part in parts if isinstance(part, nn.Linear) and part.bias is not None]
    wanted = [nn.Flatten, *[nn.Linear, nn.ReLU] * len(linear)][:-1]
    if not linear or [type(part) for part in parts] != wanted:
        return None
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if len(trained) != 2 * len(linear):
        return None  # weights that are frozen, or stand there twice, make another network
    flatten = parts[0]
    whole = isinstance(flatten, nn.Flatten) and (flatten.start_dim, flatten.end_dim) == (1, -1)
    return tuple(layer.out_features for layer in linear[:-1]) if whole else None


_HINT = "; a model with a parameter named shape gets the shape of the images"

_GENERATOR = Lock()
"""Held while torch's global generator is borrowed: two threads that build at once would draw from each other's seed."""


def build(name: str, labels: int, shape: Shape, seed: int, *purpose: str | int) -> nn.Module:
    """Return a new model whose initial parameters depend on (seed, purpose) alone.

    Those of a built-in model are drawn from the keyed stream itself (``initialise``). Custom models draw theirs from
    torch's global generator; it is seeded from the keyed stream for just that, and then put back as it was.

    Args:
        name: the model's name.
        labels: logits that it gives for each image.
        shape: the shape of the images.
        seed, purpose: see ``fl.arithmetic.streams.stream``.

    Raises:
        UnknownPluginError: no model has that name.
        ModelError: a built-in model does not fit the images.
        PluginError: it cannot be imported, or is not fit for federated training (see ``fl.training.models.model``).
    """
    make = MODELS.load(name)
    with _GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(int.from_bytes(stream_key(seed, *purpose)[:8], "little") >> 1)
        if name in BUILTIN:
            return initialise(make(labels, shape), seed, *purpose)
        any_shape = _takes_shape(make)
        try:
            module = make(labels, shape=shape) if any_shape else make(labels)
            _check(module, labels, shape, "" if any_shape else _HINT)
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, PluginError) else blame(error)
            raise PluginError(f"model {name!r} for {labels} labels and images of {shape}: {why}") from error
        return module


def initialise(module: nn.Module, seed: int, *purpose: str | int) -> nn.Module:
    """Draw the initial parameters of a built-in model (``initial_values``), and return it.

    Layers that are neither linear nor convolutions keep torch's initial values, which are not random.
    """
    drawn = draw_key(seed, *purpose)
    parameters = 0
    for layer in module.modules():
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            continue
        for parameter in (layer.weight, layer.bias):
            if parameter is None:
                continue
            values = initial_values(drawn, parameters, parameter.numel(), layer.weight[0].numel())
            parameter.data.copy_(torch.from_numpy(values).view_as(parameter))
            parameters += 1
    return module


def _takes_shape(make: Callable[..., nn.Module]) -> bool:
    """Return whether a model asks for the shape of the images; those that do not are made for one shape."""
    try:
        return "shape" in signature(make).parameters
    except (TypeError, ValueError):  # not written in Python
        return False


def _check(module: nn.Module, labels: int, shape: Shape, hint: str) -> None:
    """Raise unless a registered model is fit for federated training; ``hint`` ends errors that concern the shape."""
    if not isinstance(module, nn.Module):
        raise PluginError(f"is a {type(module).__name__}, not a torch.nn.Module")
    if buffers := [buffer for buffer, _ in module.named_buffers()]:
        raise PluginError(f"has buffers ({', '.join(buffers)}), which do not travel with the parameters; use GroupNorm")
    if any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules()):
        raise PluginError("has dropout, whose draws would depend on which thread trains which client")
    if any(p.dtype != torch.float32 for p in module.parameters()) or not any(True for _ in module.parameters()):
        raise PluginError("must have parameters, all of them float32")
    images = torch.zeros(2, *shape)

    try:
        with torch.inference_mode():
            given = tuple(module(images).shape)
    except Exception as error:
        raise PluginError(f"cannot take images {tuple(images.shape)}: {blame(error)}{hint}") from error
    if given != (2, labels):
        raise PluginError(f"gives {given} for images {tuple(images.shape)}, not (2, {labels}){hint}")
