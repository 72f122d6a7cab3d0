"""Local training in torch, for any model: of one client after another, or of all clients of a service at once."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from fl.arrays import Float32Array, Int32Array, Labels, Pixels
from fl.data.dataset import Dataset, Shape
from fl.training.networks import build, seeded, vector
from fl.training.regime import Regime
from fl.training.tasks import ClientData


class ReferenceTrainer:
    """Local training in plain torch, for any ``nn.Module``."""

    def __init__(
        self,
        module: nn.Module,  # the architecture, on images [n, C, H, W]; its parameters are overwritten
        shape: Shape,  # of the images
        scale: float,  # a pixel's value in the model is ``pixel * scale + offset``
        offset: float,
        device: str = "cpu",  # the torch device to train on
    ) -> None:
        # A matrix product's bits depend on how many threads share it; here the jobs are shared instead.
        torch.set_num_threads(1)
        self.module = module.to(device).train()
        self._device = device
        self._layout = _lay_out(module, shape, device)
        self._scale, self._offset = scale, offset
        self._learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._values = [parameter.detach() for parameter in module.parameters()]

    @property
    def parameters(self) -> Float32Array:
        """[P] a copy of the module's present parameters, in torch's order, whatever their layout."""
        return vector(self._values)

    def _load(self, parameters: Float32Array) -> None:
        parts = torch.split(torch.tensor(parameters), [values.numel() for values in self._values])
        for values, part in zip(self._values, parts, strict=True):
            values.copy_(part.view_as(values))

    def train(
        self, parameters: Float32Array, pixels: Pixels, labels: Labels, order: Int32Array, regime: Regime
    ) -> tuple[Float32Array, float]:
        self._load(parameters)
        images, targets = self._images(pixels), torch.from_numpy(labels.astype(np.int64)).to(self._device)
        velocities = [torch.zeros_like(parameter) for parameter in self._learned] if regime.momentum else None
        total = 0.0
        for epoch in torch.from_numpy(order.astype(np.int64)):
            for batch in epoch.split(regime.batch_size):
                for parameter in self._learned:
                    parameter.grad = None
                loss = cross_entropy(self.module(images[batch]), targets[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                self._step(regime, velocities)
                total += float(loss.detach()) * len(batch)
        return self.parameters, total / order.size

    def _step(self, regime: Regime, velocities: Sequence[Tensor] | None) -> None:
        with torch.no_grad():
            for place, parameter in enumerate(self._learned):
                step = parameter.grad
                if step is None:  # no part of the model uses it
                    continue
                if velocities is not None:
                    step = velocities[place].mul_(regime.momentum).add_(step)
                parameter.sub_(step, alpha=regime.learning_rate)

    def correct(self, parameters: Float32Array, pixels: Pixels, labels: Labels) -> int:
        return int((self.logits(parameters, pixels).argmax(1).numpy() == labels).sum())

    def logits(self, parameters: Float32Array, pixels: Pixels) -> Tensor:
        """Return what the model gives for each image, [n, labels], in evaluation."""
        self._load(parameters)
        self.module.eval()
        with torch.no_grad():  # not inference_mode: what a model keeps of it could not be trained with
            logits: Tensor = self.module(self._images(pixels)).cpu()
        self.module.train()
        return logits

    def _images(self, pixels: Pixels) -> Tensor:
        """Return [n, C, H, W] standardised images. A copy: torch takes no read-only arrays, and data sets may be."""
        images = torch.from_numpy(pixels.astype(np.float32)).to(self._device).contiguous(memory_format=self._layout)
        return images.mul_(self._scale).add_(self._offset)


def _lay_out(module: nn.Module, shape: Shape, device: str) -> torch.memory_format:
    """Convert a module to the layout of memory in which it trains, and return that layout.

    Convolutions take a quarter less time where channels lie side by side. By rule, not by timing, so that a run can be
    repeated.
    """
    if any(isinstance(part, nn.Conv2d) for part in module.modules()):
        images = torch.zeros(2, *shape, device=device).contiguous(memory_format=torch.channels_last)
        try:
            tried = deepcopy(module)  # which may keep something of a first call
        except Exception:  # as that of weight_norm's first form
            tried = module
        try:
            with seeded(b""):
                tried.to(memory_format=torch.channels_last)(images).sum().backward()  # type: ignore[call-overload]
        except RuntimeError:  # it needs the usual layout, as x.view(len(x), -1) does after a convolution
            module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        else:
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            return torch.channels_last
    return torch.contiguous_format


class BatchedTrainer:
    """Trains all clients of one service together on an accelerator: their models are stacked and stepped at once.

    ``torch.func.vmap`` turns each step of all clients into one set of kernels. On a CPU that is slower than training
    one client after another (grouped convolutions), so it is used on accelerators only; there, results are seeded but
    not exact to the bit.
    """

    def __init__(
        self,
        module: nn.Module,  # on images [n, C, H, W]; its parameters are not used
        device: str,  # a torch device, such as ``cuda``
        scale: float,  # a pixel's value in the model is ``pixel * scale + offset``
        offset: float,
    ) -> None:
        self._module = module.to(device).train()
        self._device = torch.device(device)
        self._scale, self._offset = scale, offset
        self._shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        self._learned = torch.cat(
            [
                torch.full((parameter.numel(),), parameter.requires_grad, device=device)
                for parameter in module.parameters()
            ]
        )

    def train(
        self, parameters: Float32Array, clients: Sequence[ClientData], regime: Regime
    ) -> list[tuple[Float32Array, float]]:
        """Return each client's trained parameters [P] and mean loss, as ``Trainer.train`` would one by one.

        Clients with fewer steps than others rest until all are done; samples that pad a short batch weigh nothing.
        """
        images, labels, weights = self._schedule(clients, regime)
        stacked = torch.from_numpy(parameters).to(self._device).repeat(len(clients), 1)
        velocity = torch.zeros_like(stacked)
        total = torch.zeros(len(clients), device=self._device)
        step = vmap(grad_and_value(self._loss))
        for x, y, weight in zip(images, labels, weights, strict=True):
            gradient, loss = step(stacked, x, y, weight)
            gradient = gradient.where(self._learned, 0)  # frozen parameters have one here
            # A client at rest has no samples: its gradient is zero, and its momentum must not move it either.
            works = (weight.sum(1, keepdim=True) > 0).float()
            velocity = regime.momentum * velocity + gradient
            stacked = stacked - regime.learning_rate * works * velocity
            total += loss * weight.sum(1)
        sizes = [client.order.size for client in clients]
        return [
            (vector, float(loss) / size)
            for vector, loss, size in zip(stacked.cpu().numpy(), total.cpu(), sizes, strict=True)
        ]

    def correct(self, parameters: Float32Array, pixels: Pixels, labels: Labels) -> int:
        """Return how many images the model labels correctly."""
        self._module.eval()
        with torch.inference_mode():
            flat = torch.from_numpy(parameters).to(self._device)
            logits = functional_call(self._module, self._unflatten(flat), (self._images(pixels),))
        self._module.train()
        return int((logits.argmax(1).cpu().numpy() == labels).sum())

    def _loss(self, flat: Tensor, images: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        logits = functional_call(self._module, self._unflatten(flat), (images,))
        each = cross_entropy(logits, labels, reduction="none")
        return (each * weights).sum() / weights.sum().clamp(min=1)

    def _schedule(
        self, clients: Sequence[ClientData], regime: Regime
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return for each step the batches of all clients: images [J, B, C, H, W], labels [J, B], weights [J, B]."""
        size = regime.batch_size
        batches = [
            [epoch[first : first + size] for epoch in client.order for first in range(0, len(epoch), size)]
            for client in clients
        ]
        images, labels, weights = [], [], []
        pixels = [self._images(client.pixels) for client in clients]
        targets = [torch.from_numpy(client.labels).long().to(self._device) for client in clients]
        for step in range(max(map(len, batches))):
            chosen = np.zeros((len(clients), size), dtype=np.int64)
            weight = np.zeros((len(clients), size), dtype=np.float32)
            for j, steps in enumerate(batches):
                if step < len(steps):
                    chosen[j, : len(steps[step])] = steps[step]
                    weight[j, : len(steps[step])] = 1.0
            index = torch.from_numpy(chosen).to(self._device)
            images.append(torch.stack([p[i] for p, i in zip(pixels, index, strict=True)]))
            labels.append(torch.stack([t[i] for t, i in zip(targets, index, strict=True)]))
            weights.append(torch.from_numpy(weight).to(self._device))
        return images, labels, weights

    def _unflatten(self, flat: Tensor) -> dict[str, Tensor]:
        parts = torch.split(flat, [shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def _images(self, pixels: Pixels) -> Tensor:
        return torch.from_numpy(pixels).to(self._device).float() * self._scale + self._offset


@dataclass(frozen=True)
class TorchModel:
    """A model that torch trains on a data set; each one that is made depends on (seed, purpose) alone."""

    dataset: Dataset
    model: str  # its name

    def reference(self, device: str, seed: int, *purpose: str | int) -> ReferenceTrainer:
        data = self.dataset
        return ReferenceTrainer(self._module(seed, *purpose), data.info.shape, data.scale, data.offset, device)

    def batched(self, device: str, seed: int, *purpose: str | int) -> BatchedTrainer:
        return BatchedTrainer(self._module(seed, *purpose), device, self.dataset.scale, self.dataset.offset)

    def initial_parameters(self, seed: int, *purpose: str | int) -> Float32Array:
        return vector(self._module(seed, *purpose).parameters())

    def drawing(self, key: bytes) -> AbstractContextManager[object]:
        """Return a context in which what the model draws is that of a keyed stream."""
        return seeded(key)

    def _module(self, seed: int, *purpose: str | int) -> nn.Module:
        return build(self.model, self.dataset.info.labels, self.dataset.info.shape, seed, *purpose)
