"""Training of all clients together equals training them one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from fl.arithmetic.streams import stream
from fl.data.dataset import Shape
from fl.training.local import BatchedTrainer, ReferenceTrainer
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import ClientData, visiting_order
from support.tiers import slow

SCALE, OFFSET, LABELS = 1 / 128, -1.0, 4
SHAPE = Shape(1, 28, 28)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small steps of many threads mostly wait for each other, the more so on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def client(index: int, images: int, epochs: int, shape: Shape = SHAPE) -> ClientData:
    rng = stream(0, "client", index)
    pixels = rng.integers(256, size=(images, *shape)).astype(np.uint8)
    labels = rng.integers(LABELS, size=images).astype(np.uint8)
    return ClientData(pixels, labels, visiting_order(images, epochs, rng))


@pytest.mark.parametrize("momentum", [*slow(0.0), 0.9])
@pytest.mark.parametrize("sizes", [(50, 50), (50, 7, 23)], ids=["equal", "unequal"])
@pytest.mark.parametrize("model", ["cnn", "mlp"])
def test_batched_equals_one_by_one_over_fifty_steps(model: str, sizes: tuple[int, ...], momentum: float) -> None:
    regime = Regime(model=model, local_epochs=5, batch_size=5, learning_rate=0.01, momentum=momentum)
    clients = [client(index, images, regime.local_epochs) for index, images in enumerate(sizes)]
    assert max(c.order.size for c in clients) / regime.batch_size == 50
    module = build(model, LABELS, SHAPE, 0)
    one_by_one = ReferenceTrainer(build(model, LABELS, SHAPE, 0), SHAPE, SCALE, OFFSET)
    start = one_by_one.parameters
    together = BatchedTrainer(module, "cpu", SCALE, OFFSET).train(start, clients, regime)
    for data, (vector, loss) in zip(clients, together, strict=True):
        expected, expected_loss = one_by_one.train(start, *data, regime)
        moved = np.abs(expected - start).max()
        assert moved > 1e-3  # there was something to compare
        np.testing.assert_allclose(vector, expected, rtol=0, atol=2e-3 * moved)
        assert loss == pytest.approx(expected_loss, rel=1e-4)


@pytest.mark.parametrize("model", ["cnn", "mlp"])
def test_images_may_have_any_shape(model: str) -> None:
    shape, regime = Shape(3, 12, 10), Regime(model=model, local_epochs=3, batch_size=5, learning_rate=0.01)
    clients = [client(index, images, regime.local_epochs, shape) for index, images in enumerate((20, 7))]
    one_by_one = ReferenceTrainer(build(model, LABELS, shape, 0), shape, SCALE, OFFSET)
    start = one_by_one.parameters
    batched = BatchedTrainer(build(model, LABELS, shape, 0), "cpu", SCALE, OFFSET)
    for data, (vector, _) in zip(clients, batched.train(start, clients, regime), strict=True):
        expected, _ = one_by_one.train(start, *data, regime)
        np.testing.assert_allclose(vector, expected, rtol=0, atol=2e-3 * np.abs(expected - start).max())


def test_evaluation_counts_as_one_by_one() -> None:
    pixels, labels, _ = client(0, 200, 1)
    trainer = ReferenceTrainer(build("cnn", LABELS, SHAPE, 0), SHAPE, SCALE, OFFSET)
    batched = BatchedTrainer(build("cnn", LABELS, SHAPE, 1), "cpu", SCALE, OFFSET)
    hits = batched.correct(trainer.parameters, pixels, labels)
    assert hits == pytest.approx(
        trainer.correct(trainer.parameters, pixels, labels), abs=1
    )  # a tie may fall either way
    assert 0 < hits < 200


def test_frozen_layers_stay_as_they_are() -> None:
    regime = Regime(model="mlp", local_epochs=2, batch_size=5, learning_rate=0.05, momentum=0.5)
    modules = [build("mlp", LABELS, SHAPE, 0) for _ in range(2)]
    for module in modules:
        module.get_submodule("1").requires_grad_(requires_grad=False)
    one_by_one = ReferenceTrainer(modules[0], SHAPE, SCALE, OFFSET)
    start, frozen = one_by_one.parameters, 784 * 200 + 200
    clients = [client(index, images, 2) for index, images in enumerate((20, 7))]
    together = BatchedTrainer(modules[1], "cpu", SCALE, OFFSET).train(start, clients, regime)
    for data, (vector, _) in zip(clients, together, strict=True):
        assert np.array_equal(vector[:frozen], start[:frozen])
        np.testing.assert_allclose(vector, one_by_one.train(start, *data, regime)[0], rtol=0, atol=1e-5)
        assert not np.array_equal(vector, start)
