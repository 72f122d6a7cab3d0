"""Local training against a training loop written out by hand in plain torch."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from fl.arithmetic.streams import stream
from fl.data.dataset import Shape
from fl.training.local import ReferenceTrainer
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import visiting_order

SCALE, OFFSET = 1 / 128, -1.0
SHAPE = Shape(1, 28, 28)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Train on one thread, as the federation does: on such small images more are slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def toy(images: int = 23, labels: int = 4, shape: Shape = SHAPE) -> tuple[np.ndarray, np.ndarray]:
    rng = stream(0, "toy")
    return rng.integers(256, size=(images, *shape)).astype(np.uint8), rng.integers(labels, size=images).astype(np.uint8)


def by_hand(module: nn.Module, pixels, labels, order, regime: Regime) -> tuple[np.ndarray, float]:
    """Plain SGD as in any tutorial."""
    images = torch.tensor(pixels / 128 - 1.0, dtype=torch.float32)
    targets = torch.tensor(labels, dtype=torch.long)
    optimiser = torch.optim.SGD(module.parameters(), lr=regime.learning_rate, momentum=regime.momentum)
    losses = []
    for epoch in order.tolist():
        for first in range(0, len(epoch), regime.batch_size):
            batch = epoch[first : first + regime.batch_size]
            each = nn.CrossEntropyLoss(reduction="none")(module(images[batch]), targets[batch])
            optimiser.zero_grad()
            each.mean().backward()
            optimiser.step()
            losses += each.tolist()
    return nn.utils.parameters_to_vector(module.parameters()).detach().numpy(), sum(losses) / len(losses)


@pytest.mark.parametrize("model", ["cnn", "mlp"])
@pytest.mark.parametrize(
    "regime",
    [
        Regime(batch_size=5, learning_rate=0.05, local_epochs=1),  # 23 images: the last step has 3
        Regime(batch_size=8, learning_rate=0.02, local_epochs=3, momentum=0.9),
        Regime(batch_size=64, learning_rate=0.1, local_epochs=2),  # all images in one step
        Regime(batch_size=1, learning_rate=0.01, local_epochs=1),
    ],
)
@pytest.mark.parametrize("shape", [SHAPE, Shape(3, 12, 10)], ids=str)
def test_sgd_is_what_plain_torch_does(model: str, regime: Regime, shape: Shape) -> None:
    pixels, labels = toy(shape=shape)
    order = visiting_order(len(labels), regime.local_epochs, stream(1))
    module = build(model, 4, shape, 7)
    start = nn.utils.parameters_to_vector(module.parameters()).detach().numpy().copy()
    expected, expected_loss = by_hand(module, pixels, labels, order, regime)

    trainer = ReferenceTrainer(build(model, 4, shape, 0), shape, SCALE, OFFSET)
    trained, loss = trainer.train(start, pixels, labels, order, regime)
    np.testing.assert_allclose(trained, expected, rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert np.abs(trained - start).max() > 1e-3  # there was something to compare


def test_training_starts_afresh_every_time() -> None:
    """Nothing of one client's training, momentum included, reaches the next client's."""
    pixels, labels = toy()
    regime = Regime(batch_size=4, momentum=0.9)
    order = visiting_order(len(labels), 1, stream(1))
    trainer = ReferenceTrainer(build("mlp", 4, SHAPE, 0), SHAPE, SCALE, OFFSET)
    start = trainer.parameters
    kept = start.copy()
    first = trainer.train(start, pixels, labels, order, regime)
    trainer.train(first[0], pixels[::-1].copy(), labels, order, regime)
    again = trainer.train(start, pixels, labels, order, regime)
    assert first[0].tobytes() == again[0].tobytes()
    assert first[1] == again[1]
    assert start.tobytes() == kept.tobytes()  # nor is the global model touched


@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet8"])
def test_parameters_are_in_torchs_order_whatever_their_layout(model: str) -> None:
    module = build(model, 4, SHAPE, 0)
    before = nn.utils.parameters_to_vector(module.parameters()).detach().numpy().copy()
    trainer = ReferenceTrainer(module, SHAPE, SCALE, OFFSET)
    assert trainer.parameters.tobytes() == before.tobytes()  # wrapping changes no value
    pixels, labels = toy()
    order = visiting_order(len(labels), 1, stream(1))
    trained, _ = trainer.train(before, pixels, labels, order, Regime())
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
    assert flat.numpy().tobytes() == trained.tobytes()


class Views(nn.Module):
    """A network that is written for one layout of memory, as many are."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(1, 2, 5), nn.Linear(2 * 24 * 24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.linear(self.convolution(x).view(len(x), -1))


def test_a_network_may_require_the_usual_layout() -> None:
    module = Views()
    trainer = ReferenceTrainer(module, SHAPE, SCALE, OFFSET)
    (pixels, labels), start, regime = toy(), trainer.parameters, Regime()
    order = visiting_order(len(labels), 1, stream(1))
    trained, loss = trainer.train(start, pixels, labels, order, regime)
    nn.utils.vector_to_parameters(torch.from_numpy(start), module.parameters())
    expected, expected_loss = by_hand(module, pixels, labels, order, regime)
    np.testing.assert_allclose(trained, expected, rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(expected_loss, rel=1e-5)


def test_parameters_that_nothing_uses_or_that_are_frozen_stay_as_they_are() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.Linear(4, 4))
    module[1].weight.requires_grad_(requires_grad=False)
    module.register_parameter("spare", nn.Parameter(torch.ones(3)))
    trainer = ReferenceTrainer(module, SHAPE, SCALE, OFFSET)
    start = trainer.parameters
    pixels, labels = toy()
    order = visiting_order(len(labels), 1, stream(1))
    trained, _ = trainer.train(start, pixels, labels, order, Regime(momentum=0.9))
    changed = np.flatnonzero(trained != start)
    spare, frozen = range(3), range(3, 3 + 4 * 784)
    assert changed.size
    assert not set(changed.tolist()) & {*spare, *frozen}


def test_parameters_are_a_copy() -> None:
    trainer = ReferenceTrainer(build("mlp", 4, SHAPE, 0), SHAPE, SCALE, OFFSET)
    trainer.parameters[:] = 0
    assert trainer.parameters.any()


def test_correct_counts_the_images_labelled_rightly() -> None:
    # A model that looks at the first three pixels alone: the label is the brightest of them.
    brightest = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
    with torch.no_grad():
        brightest[1].weight.zero_()[:, :3] = torch.eye(3)
        brightest[1].bias.zero_()
    trainer = ReferenceTrainer(brightest, SHAPE, SCALE, OFFSET)
    pixels = np.zeros((4, *SHAPE), dtype=np.uint8)
    for image, label in enumerate((0, 1, 2, 2)):
        pixels[image, 0, 0, label] = 255
    labels = np.array([0, 1, 2, 0], dtype=np.uint8)
    assert trainer.correct(trainer.parameters, pixels, labels) == 3
    assert trainer.correct(np.zeros_like(trainer.parameters), pixels, labels) == 2  # all look alike: label 0


def test_pixels_are_scaled_and_shifted() -> None:
    # One weight of 1 on the first pixel, for label 1: rightly labelled 1 if pixel * scale + offset > 0.
    sign = nn.Sequential(nn.Flatten(), nn.Linear(784, 2))
    with torch.no_grad():
        sign[1].weight.zero_()[1, 0] = 1
        sign[1].bias.zero_()
    pixels = np.zeros((4, *SHAPE), dtype=np.uint8)
    pixels[:, 0, 0, 0] = (99, 100, 101, 255)
    ones = np.ones(4, dtype=np.uint8)
    trainer = ReferenceTrainer(sign, SHAPE, 0.01, -1.0)
    assert trainer.correct(trainer.parameters, pixels, ones) == 2
    trainer = ReferenceTrainer(sign, SHAPE, 0.01, 0.0)
    assert trainer.correct(trainer.parameters, pixels, ones) == 4


def test_each_epoch_visits_every_image_once_in_an_order_of_its_own() -> None:
    order = visiting_order(50, 3, stream(2))
    assert (order.shape, order.dtype) == ((3, 50), np.int32)
    assert (np.sort(order, axis=1) == np.arange(50)).all()
    assert len({tuple(epoch) for epoch in order.tolist()}) == 3
