"""The models that services train, by name, as plain ``torch.nn.Module``s on images [n, 1, 28, 28].

Your own model is a callable ``(labels: int) -> torch.nn.Module``, registered under a name that then works as
``model = "..."`` in a scenario: by the decorator ``flmarket.model`` in a plug-in file, or by an entry point of an
installed package in the group ``flmarket.models``. It maps images [n, 1, 28, 28] to logits
[n, labels]. Only parameters travel between clients and server, and results must not depend on which thread trained
what: buffers that training changes (``BatchNorm``'s running means; ``GroupNorm`` has none) and random layers
(``Dropout``) are refused.
"""

from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor, nn

from fl.model_names import BUILTIN, MODELS
from fl.plugins import PluginError
from fl.streams import stream

IMAGE_SIDE = 28
MLP_HIDDEN = (200, 200)

ModelFactory = Callable[[int], nn.Module]


class HalveByMax(nn.Module):
    """2 x 2 max pooling with stride 2, as three maxima over strided slices.

    The same numbers as ``MaxPool2d(2)``, whose CPU kernel takes a quarter of a training step of this CNN and more than
    half of an evaluation.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Halve the last two dimensions, which must be even."""
        rows = torch.maximum(x[..., ::2, :], x[..., 1::2, :])
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def cnn(labels: int) -> nn.Module:
    """Return the paper's network: "two convolution layers and three full-connected layers", in LeNet's sizes."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), HalveByMax(),
        nn.Conv2d(6, 16, 5), nn.ReLU(), HalveByMax(),
        nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, labels),
    )  # fmt: skip


def mlp(labels: int) -> nn.Module:
    """Return a perceptron with two hidden layers of 200, a common small baseline in federated learning."""
    layers: list[nn.Module] = [nn.Flatten()]
    width = IMAGE_SIDE * IMAGE_SIDE
    for hidden in MLP_HIDDEN:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, labels))


_GENERATOR = Lock()
"""Held while torch's global generator is borrowed: two threads that build at once would draw from each other's seed."""


def build(name: str, labels: int, seed: int, *purpose: str | int) -> nn.Module:
    """Return a new model whose initial parameters depend on (seed, purpose) alone.

    Modules draw their initial values from torch's global generator; it is seeded from the keyed stream for just that,
    and then put back as it was.

    Raises:
        UnknownPluginError: there is none of that name.
        PluginError: it cannot be imported, or is not fit for federated training (see the top of this module).
    """
    make = MODELS.load(name)
    with _GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, *purpose).integers(2**63)))
        if name in BUILTIN:
            return make(labels)
        try:
            module = make(labels)
            _check(module, labels)
        except Exception as error:
            why = str(error) if isinstance(error, PluginError) else repr(error)
            raise PluginError(f"model {name!r} for {labels} labels: {why}") from error
        return module


def _check(module: nn.Module, labels: int) -> None:
    """Raise unless a registered model is fit for federated training."""
    if not isinstance(module, nn.Module):
        raise PluginError(f"is a {type(module).__name__}, not a torch.nn.Module")
    if buffers := [buffer for buffer, _ in module.named_buffers()]:
        raise PluginError(f"has buffers ({', '.join(buffers)}), which do not travel with the parameters; use GroupNorm")
    if any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules()):
        raise PluginError("has dropout, whose draws would depend on which thread trains which client")
    if any(p.dtype != torch.float32 for p in module.parameters()) or not any(True for _ in module.parameters()):
        raise PluginError("must have parameters, all of them float32")
    with torch.inference_mode():
        shape = tuple(module(torch.zeros(2, 1, IMAGE_SIDE, IMAGE_SIDE)).shape)
    if shape != (2, labels):
        raise PluginError(f"gives {shape} for images (2, 1, {IMAGE_SIDE}, {IMAGE_SIDE}), and not (2, {labels})")
