"""The models that services train, by name, as plain ``torch.nn.Module``s on images [n, channels, height, width].

A user's own model is a function registered by ``flmarket.model``, or by an entry point of an installed package in the
group ``flmarket.models``.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from itertools import pairwise
from threading import RLock

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fl.arithmetic.draws import draw_key
from fl.arithmetic.streams import stream_key
from fl.arrays import Float32Array
from fl.data.dataset import Shape
from fl.training.models import HIDDEN, MODELS, initial_values, require_fit
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


# Batch normalisation fails where clients hold different labels, and its running means do not travel with parameters;
# federated learning uses group normalisation in its place (Hsieh et al. 2020, "The Non-IID Data Quagmire of
# Decentralized Machine Learning"), here with two groups.
GROUPS = 2
WIDTHS = (16, 32, 64)


def resnet8(labels: int, shape: Shape) -> nn.Module:
    """ResNet-8: a convolution, three residual blocks of two convolutions each, and one fully connected layer.

    The second and third block halve height and width. The mean over what is left goes into the last layer, so that
    images of any size fit, and the number of parameters does not depend on it: 78,042 for ten labels and three
    channels.
    """
    require_fit("resnet8", shape)
    first, *rest = WIDTHS
    layers: list[nn.Module] = [_convolution(shape.channels, first), nn.GroupNorm(GROUPS, first), nn.ReLU()]
    layers.append(Block(first, first, 1))
    width = first
    for wider in rest:
        layers.append(Block(width, wider, 2))
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, labels))


class Block(nn.Module):
    """Two 3 x 3 convolutions, and a shortcut around them: a 1 x 1 convolution where the sizes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            _convolution(inputs, outputs, stride), nn.GroupNorm(GROUPS, outputs), nn.ReLU(),
            _convolution(outputs, outputs), nn.GroupNorm(GROUPS, outputs),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.GroupNorm(GROUPS, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return maps [n, outputs, height / stride, width / stride]."""
        summed: Tensor = self.inner(x) + self.shortcut(x)
        return summed.relu()


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Without a bias, which the normalisation behind it would take away."""
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


def hidden_widths(module: nn.Module) -> tuple[int, ...] | None:
    """Return the widths of the hidden layers of a network that is nothing but layers as ``mlp`` has; else None."""
    parts = list(module) if type(module) is nn.Sequential else []
    linear = [part for part in parts if isinstance(part, nn.Linear) and part.bias is not None]
    wanted = [nn.Flatten, *[nn.Linear, nn.ReLU] * len(linear)][:-1]
    if not linear or [type(part) for part in parts] != wanted or not is_untouched(module):
        return None
    if any(part.forward.__module__ != type(part).__module__ for part in (module, *parts)):
        return None  # a method that was replaced in torch's class
    widths = [linear[0].in_features, *(len(layer.bias) for layer in linear)]
    trained = [tuple(parameter.shape) for parameter in module.parameters() if parameter.requires_grad]
    if trained != [shape for inputs, outputs in pairwise(widths) for shape in ((outputs, inputs), (outputs,))]:
        return None  # weights that are frozen, stand there twice or behind the biases make another network
    flatten = parts[0]
    whole = isinstance(flatten, nn.Flatten) and (flatten.start_dim, flatten.end_dim) == (1, -1)
    return tuple(widths[1:-1]) if whole else None


def is_untouched(module: nn.Module) -> bool:
    """Return whether a module does what the types of its parts say: nothing is hooked to it or replaces a method."""
    everywhere = vars(nn.modules.module)
    return (
        not any(everywhere[name] for name in everywhere if name.startswith("_global") and name.endswith("_hooks"))
        and not any(callable(getattr(type(part), name, None)) for part in module.modules() for name in vars(part))
        and not any(vars(part)[name] for part in module.modules() for name in vars(part) if name.endswith("_hooks"))
        and not any(
            parameter._backward_hooks or parameter._post_accumulate_grad_hooks for parameter in module.parameters()
        )
    )


_HINT = "; a model with a parameter named shape gets the shape of the images"


def build(name: str, labels: int, shape: Shape, seed: int, *purpose: str | int, service: str = "") -> nn.Module:
    """Return a new model whose initial parameters depend on (seed, purpose) alone.

    Those of a built-in model are drawn from the keyed stream itself (``initialise``). Custom models draw theirs from
    the process's generators, which are seeded from the keyed stream for just that.

    Args:
        name: the model's name.
        labels: logits that it gives for each image.
        shape: the shape of the images.
        seed, purpose: see ``fl.arithmetic.streams.stream``.
        service: who trains it, for messages.

    Raises:
        UnknownPluginError: no model has that name.
        ModelError: a built-in model does not fit the images.
        PluginError: it cannot be imported, or does not map these images to logits.
    """
    make = MODELS.load(name)
    with seeded(stream_key(seed, *purpose)):
        if MODELS.is_builtin(name):
            return initialise(make(labels, shape), seed, *purpose)
        with faults_of(name, labels, shape, service):
            arguments = {"shape": shape} if _takes_shape(make) else {}
            module = make(labels, **arguments)
            with seeded(b""):  # another one is tried: what a first call does is left to training
                tried = make(labels, **arguments)
                _check(tried, labels, shape, "" if arguments else _HINT)
            names, places = zip(*map(_parameters, (module, tried)), strict=True)
            if places[0] & places[1]:
                raise PluginError("its function returns the same module on every call; make a new one each time")
            if names[0] != names[1]:
                with torch.no_grad():
                    module(torch.zeros(2, *shape))
            return module


@contextmanager
def faults_of(name: str, labels: int, shape: Shape, service: str = "") -> Iterator[None]:
    """Let what is raised become a ``PluginError`` that names the model, who trains it, and what it was tried on."""
    try:
        yield
    except (Exception, SystemExit) as error:
        why = str(error) if isinstance(error, PluginError) else blame(error)
        model = f"model {name!r} of service {service!r}," if service else f"model {name!r}"
        raise PluginError(f"{model} for {labels} labels and images of {shape}: {why}") from error


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


def _parameters(module: nn.Module) -> tuple[set[str], set[int]]:
    """Return the names of the parameters that have values, as lazy ones get with a first call, and where these lie."""
    ready = {name: parameter for name, parameter in module.named_parameters() if not is_lazy(parameter)}
    return set(ready), {parameter.untyped_storage().data_ptr() for parameter in ready.values() if parameter.numel()}


def vector(parameters: Iterable[Tensor]) -> Float32Array:
    """Return the values of parameters in one array [P], in their logical order, whatever their layout in memory."""
    values: Float32Array = torch.cat([parameter.detach().reshape(-1) for parameter in parameters]).cpu().numpy()
    return values


def _check(module: nn.Module, labels: int, shape: Shape, hint: str) -> None:
    """Raise unless a registered model maps images to logits; ``hint`` ends errors that concern the shape."""
    if not isinstance(module, nn.Module):
        raise PluginError(f"is a {type(module).__name__}, not a torch.nn.Module")
    if any(p.dtype != torch.float32 for p in module.parameters()) or not any(True for _ in module.parameters()):
        raise PluginError("must have parameters, all of them float32")
    images = torch.zeros(2, *shape)
    for training in (True, False):
        try:
            with torch.no_grad():
                logits: object = module.train(training)(images)
        except Exception as error:
            raise PluginError(f"cannot take images {tuple(images.shape)}: {blame(error)}{hint}") from error
        if not isinstance(logits, Tensor):
            raise PluginError(f"returns a {type(logits).__name__}; it must return logits [n, labels]")
        if (size := tuple(logits.shape)) != (2, labels):
            raise PluginError(f"gives {size} for images {tuple(images.shape)}, not (2, {labels}){hint}")


# Models draw from generators that a process has one of each, torch's, NumPy's and Python's: their initial parameters,
# dropout, augmentation. Who else in the process draws from them must not matter, nor be able to tell that a model did.
_BORROWED = RLock()
"""Held while the generators are lent: two threads at once would draw from each other's seed."""


@contextmanager
def seeded(key: bytes) -> Iterator[Callable[[], bool]]:
    """Seed the generators from a keyed stream (``fl.arithmetic.streams.stream_key``), and put them back as they were.

    Lent to one thread at a time. What is yielded tells, once and at the end, whether any number was drawn.
    """
    number = int.from_bytes(key[:8], "little") >> 1
    with _BORROWED:
        of_torch = [torch.default_generator, *torch.cuda.default_generators]
        before = [generator.get_state() for generator in of_torch], random.getstate(), np.random.get_state()  # noqa: NPY002

        def seed() -> None:
            for generator in of_torch:
                generator.manual_seed(number)
            random.seed(number)
            np.random.seed(number % 2**32)  # noqa: NPY002

        try:
            seed()
            first = _draw()
            seed()
            yield lambda: _draw() != first
        finally:
            for generator, state in zip(of_torch, before[0], strict=True):
                generator.set_state(state)
            random.setstate(before[1])
            np.random.set_state(before[2])  # noqa: NPY002


def _draw() -> tuple[int, int, int]:
    return int(torch.randint(2**62, ())), random.getrandbits(62), int(np.random.randint(2**62))  # noqa: NPY002
