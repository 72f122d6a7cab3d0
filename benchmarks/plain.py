"""Federated averaging in plain PyTorch, as anyone would write it in an afternoon: the yardstick of engine.py.

Nothing slows it down on purpose: images are float tensors in memory, there is no DataLoader, and one module serves all
clients.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as every tutorial does

Client = tuple[Tensor, Tensor]
"""Images [n, channels, side, side] and labels [n]."""


class LeNet(nn.Module):
    """Two convolutions with max-pooling, three fully connected layers: the paper's network, on 28 or 32 pixels."""

    def __init__(self, channels: int = 1, side: int = 28, labels: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * ((side - 12) // 4) ** 2, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, labels)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def train_client(model: nn.Module, client: Client, *, epochs: int, batch_size: int, rate: float) -> None:
    """Run local SGD."""
    images, labels = client
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(batch_size):
            optimiser.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimiser.step()


def evaluate(model: nn.Module, images: Tensor, labels: Tensor, batch: int = 250) -> float:
    """Return the accuracy. The batch is the fastest, or level with it, on the machines that were measured."""
    model.eval()
    with torch.no_grad():
        hits = sum(
            int((model(x).argmax(1) == y).sum()) for x, y in zip(images.split(batch), labels.split(batch), strict=True)
        )
    model.train()
    return hits / len(labels)


def federated_round(
    model: nn.Module, clients: list[Client], test: Client, *, evaluated: int = 250, **local: float
) -> float:
    """Train the clients one after another, average them into ``model``, and return its accuracy."""
    start = {name: value.clone() for name, value in model.state_dict().items()}
    total = sum(len(labels) for _, labels in clients)
    mean = {name: torch.zeros_like(value) for name, value in start.items()}
    for client in clients:
        model.load_state_dict(start)
        train_client(model, client, **local)  # type: ignore[arg-type]
        for name, value in model.state_dict().items():
            mean[name] += value * (len(client[1]) / total)
    model.load_state_dict(mean)
    return evaluate(model, *test, evaluated)
