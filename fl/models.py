"""The models that services train, by name, as plain ``torch.nn.Module``s on images [n, 1, 28, 28].

A model of your own is a callable ``(labels: int) -> torch.nn.Module`` registered under the entry-point group
``flmarket.models``; its name then works as ``model = "..."`` in a scenario.
"""

from collections.abc import Callable
from importlib.metadata import entry_points

import torch
from torch import Tensor, nn

from fl.errors import InputError
from fl.streams import stream

IMAGE_SIDE = 28
GROUP = "flmarket.models"
MLP_HIDDEN = (200, 200)

ModelFactory = Callable[[int], nn.Module]


class UnknownModelError(InputError):
    """No model of that name is built in or registered."""


class UnsuitableModelError(InputError):
    """The model holds state or randomness that federated training here can't carry from round to round."""


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


BUILTIN: dict[str, ModelFactory] = {"cnn": cnn, "mlp": mlp}


def factory(name: str) -> ModelFactory:
    """Return the model of that name, built in or registered by an installed package."""
    if name in BUILTIN:
        return BUILTIN[name]
    for entry in entry_points(group=GROUP, name=name):
        loaded: ModelFactory = entry.load()
        return loaded
    raise UnknownModelError(f"there is no model {name!r}; built in: {', '.join(BUILTIN)}")


def build(name: str, labels: int, seed: int, *purpose: str | int) -> nn.Module:
    """Return a new model whose initial parameters depend on (seed, purpose) alone.

    Modules draw their initial values from torch's global generator; it is seeded from the keyed stream for just that,
    and then put back as it was.

    Raises:
        UnknownModelError: there is none of that name.
        UnsuitableModelError: it has buffers (batch normalisation), which do not travel with the parameters, or dropout,
            which draws from torch's global generator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, *purpose).integers(2**63)))
        module = factory(name)(labels)
    if any(True for _ in module.buffers()):
        raise UnsuitableModelError(f"model {name!r} has buffers (batch normalisation, say); use group or layer norm")
    if any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules()):
        raise UnsuitableModelError(f"model {name!r} has dropout, whose draws no seed of a run decides; leave it out")
    return module
