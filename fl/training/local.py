"""Local training in plain torch, for any model: one client's SGD on its own images, and the evaluation of a model."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl.arrays import Float32Array, Int32Array, Labels, Pixels
from fl.training.regime import Regime


class ReferenceTrainer:
    """Local training in plain torch, for any ``nn.Module``."""

    def __init__(
        self,
        module: nn.Module,  # the architecture, on images [n, C, H, W]; its parameters are overwritten
        scale: float,  # a pixel's value in the model is ``pixel * scale + offset``
        offset: float,
    ) -> None:
        """Wrap a module, whose parameters and gradients become views into one flat vector each."""
        # A matrix product's bits depend on how many threads share it; here the jobs are shared instead.
        torch.set_num_threads(1)
        self._module = module.train()
        self._scale, self._offset = scale, offset
        self._flat = nn.utils.parameters_to_vector(module.parameters()).detach().clone()
        self._gradient = torch.zeros_like(self._flat)
        first = 0
        for parameter in module.parameters():
            last = first + parameter.numel()
            parameter.data = self._flat[first:last].view_as(parameter)
            parameter.grad = self._gradient[first:last].view_as(parameter)
            first = last

    @property
    def parameters(self) -> Float32Array:
        """[P] a copy of the module's present parameters."""
        copy: Float32Array = self._flat.numpy().copy()
        return copy

    def train(
        self, parameters: Float32Array, pixels: Pixels, labels: Labels, order: Int32Array, regime: Regime
    ) -> tuple[Float32Array, float]:
        self._flat.numpy()[:] = parameters
        images, targets = self._images(pixels), torch.from_numpy(labels.astype(np.int64))
        velocity = torch.zeros_like(self._flat) if regime.momentum else None
        total = 0.0
        for epoch in torch.from_numpy(order.astype(np.int64)):
            for batch in epoch.split(regime.batch_size):
                self._gradient.zero_()
                loss = cross_entropy(self._module(images[batch]), targets[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                step = self._gradient
                if velocity is not None:
                    step = velocity.mul_(regime.momentum).add_(self._gradient)
                self._flat.sub_(step, alpha=regime.learning_rate)
                total += float(loss.detach()) * len(batch)
        return self.parameters, total / order.size

    def correct(self, parameters: Float32Array, pixels: Pixels, labels: Labels) -> int:
        self._flat.numpy()[:] = parameters
        self._module.eval()
        with torch.inference_mode():
            hits = self._module(self._images(pixels)).argmax(1) == torch.from_numpy(labels.astype(np.int64))
        self._module.train()
        return int(hits.sum())

    def _images(self, pixels: Pixels) -> Tensor:
        """Return [n, C, H, W] standardised images. A copy: torch takes no read-only arrays, and data sets may be."""
        return torch.from_numpy(pixels.astype(np.float32)).mul_(self._scale).add_(self._offset)
