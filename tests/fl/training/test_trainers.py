"""The code that trains a model, and what is said when it cannot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fl.data import registry as datasets
from fl.data.dataset import Shape
from fl.training import fused
from fl.training import networks as models
from fl.training.federation import RealFederation
from fl.training.jobs import TrainingJob
from fl.training.local import ReferenceTrainer
from fl.training.models import model
from fl.training.regime import Kernel, Regime
from fl.training.tasks import Task
from fl.training.trainers import Engine, KernelError

needs_extension = pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
CNN, MLP, RESNET = Regime(model="cnn"), Regime(model="mlp"), Regime(model="resnet8")
LOGISTIC, WIDE = Regime(model="logistic"), Regime(model="wide")


def wide(labels: int, shape: Shape) -> nn.Module:
    """A network of one's own, of layers that the compiled kernel knows."""
    inputs = shape.channels * shape.height * shape.width
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 30), nn.ReLU(), nn.Linear(30, labels))


@pytest.fixture(scope="module")
def digits() -> datasets.Dataset:
    return datasets.load("digits")


@pytest.fixture
def without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an install without a compiler."""
    monkeypatch.setattr(fused, "_kernels", {})


@pytest.fixture
def own_model() -> Regime:
    model("own")(lambda labels, shape: nn.Sequential(models.mlp(labels, shape), nn.Tanh()))
    return Regime(model="own")


@needs_extension
@pytest.mark.parametrize("regime", [CNN, MLP, LOGISTIC], ids=["cnn", "mlp", "logistic"])
@pytest.mark.parametrize("wanted", ["auto", "fused"])
def test_built_in_models_take_the_fused_kernel(digits: Any, regime: Regime, wanted: Kernel) -> None:
    assert Engine(digits, regime, wanted).kernel == "fused"


def test_reference_is_plain_torch_for_every_model(digits: Any, own_model: Regime) -> None:
    for regime in (CNN, MLP, own_model):
        engine = Engine(digits, regime, "reference")
        assert engine.kernel == "reference"
        assert isinstance(engine.trainer(), ReferenceTrainer)


def test_any_other_model_takes_the_reference_path(digits: Any, own_model: Regime) -> None:
    assert Engine(digits, own_model).kernel == "reference"


def test_without_the_extension_everything_takes_the_reference_path(digits: Any, without_extension: None) -> None:
    engine = Engine(digits, CNN)
    assert engine.kernel == "reference"
    assert isinstance(engine.trainer(), ReferenceTrainer)


def test_the_fused_kernel_is_refused_for_a_model_it_does_not_know(digits: Any, own_model: Regime) -> None:
    with pytest.raises(KernelError, match="fully connected layers with ReLU between, not 'own'"):
        RealFederation([Task("alpha", digits, own_model)], 0, kernel="fused")


def test_the_fused_kernel_is_refused_where_it_was_not_built(digits: Any, without_extension: None) -> None:
    with pytest.raises(KernelError, match="was not built"):
        RealFederation([Task("alpha", digits, CNN)], 0, kernel="fused")


def colour(side: int) -> datasets.Dataset:
    """Forty noisy images in three colours, of two labels."""
    images = np.random.default_rng(0).integers(0, 256, (40, 3, side, side), dtype=np.uint8)
    images[::2, 0] //= 2
    labels = np.arange(40) % 2
    datasets.dataset(f"colour-{side}")(lambda: (images, labels, images, labels))
    return datasets.load(f"colour-{side}")


@pytest.mark.parametrize("regime", [CNN, RESNET], ids=["cnn", "resnet8"])
def test_what_the_fused_kernel_is_not_written_for_takes_the_reference_path(regime: Regime) -> None:
    images = colour(12)
    assert Engine(images, regime).kernel == "reference"
    with pytest.raises(KernelError) as caught:
        RealFederation([Task("alpha", images, regime)], 0, kernel="fused")
    assert str(caught.value) == (
        f'training.kernel = "fused": {fused.obstacle(regime.model, Shape(3, 12, 12))}; use "auto" or "reference"'
    )


@needs_extension
@pytest.mark.parametrize(("regime", "side"), [(CNN, 32), (MLP, 32), (MLP, 12), (LOGISTIC, 12), (WIDE, 12)])
def test_both_kernels_train_the_same_model_on_images_in_colour(regime: Regime, side: int) -> None:
    """A user's own network of fully connected layers is among them; it begins with its own values."""
    model("wide")(wide)
    images, order = colour(side), np.arange(40, dtype=np.int32)[None]
    trained = {}
    for wanted in ("reference", "fused"):
        engine = Engine(images, regime, wanted)
        assert (engine.kernel == "reference") == (wanted == "reference")
        start = engine.initial_parameters(0)
        parameters, loss = engine.trainer().train(start, images.train_images, images.train_labels, order, regime)
        hits = engine.trainer().correct(parameters, images.test_images, images.test_labels)
        trained[wanted] = parameters, loss, hits
    np.testing.assert_allclose(trained["fused"][0], trained["reference"][0], atol=1e-5)
    assert trained["fused"][1] == pytest.approx(trained["reference"][1], rel=1e-5)
    assert trained["fused"][2] == trained["reference"][2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there(digits: Any) -> None:
    with pytest.raises(KernelError, match="torch finds no CUDA device here"):
        RealFederation([Task("alpha", digits, CNN)], 0, device="cuda")


@pytest.mark.slow
@needs_extension
def test_both_kernels_give_the_same_accuracy_curve(digits: Any) -> None:
    """Rounding differs, so that models drift apart: less than what another seed does, far less than learning."""
    regime = replace(CNN, local_epochs=2, learning_rate=0.05)
    jobs = [TrainingJob("alpha", client, 100, 0.4) for client in range(3)]
    curves = {}
    for kernel in ("reference", "fused"):
        federation = RealFederation([Task("alpha", digits, regime)], 0, workers=0, kernel=kernel)
        curves[kernel] = [federation.accuracy("alpha")]
        curves[kernel] += [federation.train_round(round_, jobs)["alpha"].accuracy for round_ in range(1, 13)]
    assert curves["fused"] == pytest.approx(curves["reference"], abs=0.03)
    assert curves["fused"][:4] == pytest.approx(curves["reference"][:4], abs=0.006)  # two of 359 images
    assert curves["fused"][-1] > 0.8
