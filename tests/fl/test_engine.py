"""Which code trains a model, and what is said when it can't."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fl import datasets, fused, models
from fl.engine import Engine
from fl.federation import RealFederation, Task
from fl.jobs import TrainingJob
from fl.kernels import KernelError
from fl.local import ReferenceTrainer
from fl.model_names import model
from fl.regime import Kernel, Regime

needs_extension = pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
CNN, MLP = Regime(model="cnn"), Regime(model="mlp")


@pytest.fixture(scope="module")
def digits() -> datasets.Dataset:
    return datasets.load("digits")


@pytest.fixture
def without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an install without a compiler."""
    monkeypatch.setattr(fused, "_kernels", {})


@pytest.fixture
def own_model() -> Regime:
    model("own")(models.mlp)
    return Regime(model="own")


@needs_extension
@pytest.mark.parametrize("regime", [CNN, MLP], ids=["cnn", "mlp"])
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
    with pytest.raises(KernelError, match="trains the models cnn and mlp, not 'own'"):
        RealFederation([Task("alpha", digits, own_model)], 0, kernel="fused")


def test_the_fused_kernel_is_refused_where_it_was_not_built(digits: Any, without_extension: None) -> None:
    with pytest.raises(KernelError, match="was not built"):
        RealFederation([Task("alpha", digits, CNN)], 0, kernel="fused")


@pytest.mark.parametrize("regime", [CNN, MLP], ids=["cnn", "mlp"])
def test_images_of_another_shape_take_the_reference_path(regime: Regime) -> None:
    images = np.arange(4 * 360).reshape(4, 3, 12, 10).astype(np.uint8)
    datasets.dataset("colour")(lambda: (images, [0, 1, 0, 1], images, [0, 1, 0, 1]))
    colour = datasets.load("colour")
    assert Engine(colour, regime).kernel == "reference"
    with pytest.raises(KernelError) as caught:
        RealFederation([Task("alpha", colour, regime)], 0, kernel="fused")
    assert str(caught.value) == (
        'training.kernel = "fused": the fused kernel trains on images of 1 x 28 x 28, not 3 x 12 x 10; '
        'use "auto" or "reference"'
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there(digits: Any) -> None:
    with pytest.raises(KernelError, match="torch finds no CUDA device here"):
        RealFederation([Task("alpha", digits, CNN)], 0, device="cuda")


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
