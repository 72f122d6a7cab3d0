"""Local training in plain torch, for any model: one client's SGD on its own images, and the evaluation of a model."""

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl.arrays import Float32Array, Int32Array, Labels, Pixels
from fl.data.dataset import Shape
from fl.training.generators import seeded
from fl.training.networks import vector
from fl.training.regime import Regime


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
        velocities = [torch.zeros_like(it) for it in self._learned] if regime.momentum else None
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
            found: Tensor = self.module(self._images(pixels)).cpu()
        self.module.train()
        return found

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
