"""Local training of many clients at once on an accelerator: their models are stacked and stepped together.

``torch.func.vmap`` turns each step of all clients into one set of kernels. On a CPU that is slower than training one
client after another (grouped convolutions), so it is used on accelerators only; there, results are seeded but not exact
to the bit.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from fl.arrays import Float32Array, Labels, Pixels
from fl.training.regime import Regime
from fl.training.tasks import ClientData


class BatchedTrainer:
    """Trains all clients of one service together on ``device``."""

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
            [torch.full((it.numel(),), it.requires_grad, device=device) for it in module.parameters()]
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
