"""The models: sizes, pooling, and initial parameters that depend on their key alone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from fl.data.dataset import FeatureShape, Shape
from fl.training.fused import Architecture, initial_parameters
from fl.training.models import HIDDEN, ModelError, model
from fl.training.networks import HalveByMax, build, hidden_widths
from fl.training.trainers import parameter_count
from flmarket.core.plugins import PluginError, UnknownPluginError

SHAPE = Shape(1, 28, 28)


def parameters(module: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(module.parameters()).detach()


@pytest.mark.parametrize(
    ("name", "labels", "count"),
    [
        # two convolutions: 6 * 25 + 6, 16 * 6 * 25 + 16; three layers: 256 * 120 + 120, 120 * 84 + 84, 84 * 10 + 10
        ("cnn", 10, 156 + 2416 + 30840 + 10164 + 850),
        ("cnn", 62, 156 + 2416 + 30840 + 10164 + 84 * 62 + 62),
        ("mlp", 10, 784 * 200 + 200 + 200 * 200 + 200 + 200 * 10 + 10),
        ("logistic", 10, 784 * 10 + 10),
    ],
)
def test_the_networks_are_those_of_the_paper(name: str, labels: int, count: int) -> None:
    module = build(name, labels, SHAPE, 0)
    assert parameters(module).numel() == parameter_count(name, labels, SHAPE) == count
    assert module(torch.zeros(3, 1, 28, 28)).shape == (3, labels)


@pytest.mark.parametrize(
    ("shape", "features"),
    [
        (Shape(1, 28, 28), 16 * 4 * 4),
        (Shape(3, 32, 32), 16 * 5 * 5),  # LeNet-5 on CIFAR, as in every tutorial
        (Shape(1, 64, 48), 16 * 13 * 9),
        (Shape(3, 12, 10), 16),  # with a border, 16 x 16
        (Shape(1, 30, 29), 16 * 5 * 5),  # with a border, 32 x 32
        (Shape(2, 8, 9), 16),
    ],
    ids=str,
)
def test_the_networks_take_their_sizes_from_the_images(shape: Shape, features: int) -> None:
    network = build("cnn", 10, shape, 0)
    assert network(torch.zeros(3, *shape)).shape == (3, 10)
    convolutions = shape.channels * 6 * 25 + 6 + 6 * 16 * 25 + 16
    assert parameters(network).numel() == convolutions + features * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10
    assert parameter_count("cnn", 10, shape) == parameters(network).numel()
    inputs = shape.channels * shape.height * shape.width
    perceptron = build("mlp", 10, shape, 0)
    assert perceptron(torch.zeros(3, *shape)).shape == (3, 10)
    assert parameters(perceptron).numel() == inputs * 200 + 200 + 200 * 200 + 200 + 200 * 10 + 10


@pytest.mark.parametrize("shape", [Shape(1, 7, 28), Shape(3, 28, 1)], ids=str)
def test_images_that_are_too_small_for_the_cnn_are_refused_with_what_to_do(shape: Shape) -> None:
    with pytest.raises(ModelError) as caught:
        build("cnn", 10, shape, 0)
    assert str(caught.value) == (
        f"model 'cnn' needs images of at least 8 x 8 pixels, not {shape}; enlarge them, or choose model = \"mlp\" or "
        '"resnet8"'
    )
    for other in ("mlp", "resnet8"):
        assert build(other, 10, shape, 0)(torch.zeros(3, *shape)).shape == (3, 10)


@pytest.mark.parametrize("name", ["cnn", "resnet8"])
def test_networks_with_convolutions_are_refused_where_there_are_no_images(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        build(name, 2, FeatureShape(1, 1, 20), 0)
    assert str(caught.value) == f'model \'{name}\' needs images, not 20 features; choose model = "logistic" or "mlp"'


@pytest.mark.parametrize(
    ("shape", "first"), [(Shape(3, 32, 32), 3 * 16 * 9), (SHAPE, 16 * 9), (Shape(2, 13, 40), 2 * 16 * 9)], ids=str
)
def test_resnet8_has_seven_convolutions_and_one_full_layer_whatever_the_size(shape: Shape, first: int) -> None:
    network = build("resnet8", 10, shape, 0)
    layers = list(network.modules())
    kernels = [layer.kernel_size for layer in layers if isinstance(layer, nn.Conv2d)]
    assert (kernels.count((3, 3)), kernels.count((1, 1))) == (7, 2)  # those of 1 x 1 are shortcuts
    assert sum(isinstance(layer, nn.Linear) for layer in layers) == 1
    assert {layer.num_groups for layer in layers if isinstance(layer, nn.GroupNorm)} == {2}
    # Each 3 x 3 is followed by a normalisation, with two numbers for each map; so is each shortcut.
    blocks = 9 * (2 * 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64) + 2 * (3 * 16 + 2 * 32 + 2 * 64)
    shortcuts = (16 * 32 + 2 * 32) + (32 * 64 + 2 * 64)
    assert parameters(network).numel() == first + blocks + shortcuts + 64 * 10 + 10
    assert network(torch.zeros(3, *shape)).shape == (3, 10)


def test_resnet8_looks_at_each_image_by_itself() -> None:
    """No statistic of a batch: what batch normalisation would get wrong where clients hold different labels."""
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = build("resnet8", 10, Shape(3, 32, 32), 0)
    assert torch.allclose(network(images)[2:3], network(images[2:3]), atol=1e-5)


def test_a_border_of_zeros_surrounds_images_whose_sides_do_not_come_out_even() -> None:
    images = torch.randn(4, 1, 25, 18, generator=torch.Generator().manual_seed(0))
    framed = nn.functional.pad(images, (1, 1, 1, 2))  # left, right, above, below: 28 x 20
    assert torch.equal(build("cnn", 10, Shape(1, 25, 18), 0)(images), build("cnn", 10, Shape(1, 28, 20), 0)(framed))


@pytest.mark.parametrize("shape", [(2, 3, 24, 24), (1, 1, 2, 2), (5, 8, 6)])
@pytest.mark.parametrize("values", [2, 1_000_000], ids=["many equal values", "hardly any"])
def test_halving_by_max_is_max_pooling(shape: tuple[int, ...], values: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(values, shape, generator=generator).float().requires_grad_()
    y = x.detach().clone().requires_grad_()
    with torch.no_grad():
        assert torch.equal(HalveByMax()(x), nn.MaxPool2d(2)(y))
    halved, pooled = HalveByMax()(x), nn.MaxPool2d(2)(y)
    assert torch.equal(halved, pooled)
    weights = torch.randn(halved.shape, generator=generator)
    (halved * weights).sum().backward()
    (pooled * weights).sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_initial_parameters_depend_on_seed_and_purpose_alone() -> None:
    first = parameters(build("mlp", 10, SHAPE, 3, "model", "mnist"))
    torch.rand(5)  # whatever else has drawn
    torch.manual_seed(99)
    assert torch.equal(parameters(build("mlp", 10, SHAPE, 3, "model", "mnist")), first)
    for seed, purpose in ((4, ("model", "mnist")), (3, ("model", "fashion")), (3, ())):
        assert not torch.equal(parameters(build("mlp", 10, SHAPE, seed, *purpose)), first)


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_built_in_models_start_in_torch_s_default_distribution_without_torch_s_generator(name: str) -> None:
    built = [build(name, 10, SHAPE, seed) for seed in range(3)]
    torch.manual_seed(1)
    torch.rand(1)
    assert torch.equal(parameters(build(name, 10, SHAPE, 0)), parameters(built[0]))
    layers = [layer for layer in built[0].modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    for layer in layers:
        bound = 1 / np.sqrt(layer.weight[0].numel())  # as torch.nn.Linear and torch.nn.Conv2d document it
        values = np.sort(layer.weight.detach().numpy().ravel()) / bound
        assert np.abs(values).max() <= 1
        assert np.abs(layer.bias.detach().numpy()).max() <= bound
        # Kolmogorov and Smirnov's distance from the uniform distribution, at a level of 1e-4.
        expected = (values + 1) / 2
        distance = np.abs(np.arange(1, len(values) + 1) / len(values) - expected).max()
        assert distance < 2.3 / np.sqrt(len(values))
    # No two parameters share their numbers, nor do two seeds.
    firsts = {float(p.detach().ravel()[0]) * p[0].numel() ** 0.5 for model in built for p in model.parameters()}
    assert len(firsts) == sum(1 for model in built for _ in model.parameters())


def test_a_model_of_another_package_works_by_its_name(install_package: Callable[..., None]) -> None:
    source = """
from torch import nn

def linear(labels):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, labels))
"""
    install_package("acme_models", source, "flmarket.models", linear="acme_models:linear")
    assert parameters(build("linear", 7, SHAPE, 0)).numel() == 784 * 7 + 7
    with pytest.raises(UnknownPluginError, match=r"unknown model 'linea'; did you mean 'linear'\?"):
        build("linea", 7, SHAPE, 0)


def test_a_model_with_a_parameter_named_shape_gets_the_shape() -> None:
    @model("own")
    def own(labels: int, shape: tuple[int, int, int]) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, labels))

    assert parameters(build("own", 7, SHAPE, 0)).numel() == 784 * 7 + 7
    assert parameters(build("own", 7, Shape(3, 12, 10), 0)).numel() == 360 * 7 + 7


def test_other_parameters_of_a_model_keep_their_defaults() -> None:
    """Models that were written before data sets had shapes work as they did."""

    @model("own")
    def own(labels: int, hidden: int = 5) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.Linear(hidden, labels))

    assert parameters(build("own", 7, SHAPE, 0)).numel() == 784 * 5 + 5 + 5 * 7 + 7


def test_a_model_for_one_shape_is_refused_for_another_with_what_to_do() -> None:
    model("own")(lambda labels: nn.Sequential(nn.Flatten(), nn.Linear(784, labels)))
    with pytest.raises(PluginError) as caught:
        build("own", 7, Shape(3, 12, 10), 0)
    assert str(caught.value) == (
        "model 'own' for 7 labels and images of 3 x 12 x 10: cannot take images (2, 3, 12, 10): RuntimeError: mat1 and "
        "mat2 shapes cannot be multiplied (2x360 and 784x7); a model with a parameter named shape gets the shape of "
        "the images"
    )


class Twice(nn.Module):
    """Logits twice, in training or in evaluation."""

    def __init__(self, *, training: bool = True) -> None:
        super().__init__()
        self.use = training

    def forward(self, x: torch.Tensor) -> object:
        return (x, x) if self.training == self.use else x


def flat(*layers: nn.Module) -> Callable[..., nn.Module]:
    return lambda labels: nn.Sequential(nn.Flatten(), *layers, nn.Linear(784, labels))


KEPT = flat()(7)


@pytest.mark.parametrize(
    ("factory", "problem"),
    [
        (flat(nn.Linear(784, 784).double()), "float32"),
        (lambda labels: nn.Flatten(), "must have parameters"),
        (lambda labels: nn.Linear(28, labels), r"gives \(2, 1, 28, 7\) for images .* not \(2, 7\)"),
        (lambda labels: "a network", "is a str, not a torch.nn.Module"),
        (lambda: nn.Linear(1, 1), "takes 0 positional arguments but 1 was given"),
        (lambda n_classes, size: nn.Linear(1, 1), "missing 1 required positional argument: 'size'"),
        (lambda labels: flat()(labels).append(Twice()), r"returns a tuple; it must return logits \[n, labels\]"),
        (lambda labels: flat()(labels).append(Twice(training=False)), "returns a tuple; it must return logits"),
        (lambda labels: KEPT, "returns the same module on every call; make a new one each time"),
        (flat(nn.Linear(784, 784)), "returns the same module on every call"),
        (flat(nn.Linear(99, 784)), "RuntimeError"),
    ],
)
def test_a_model_that_does_not_fit_says_why(factory: Callable[..., nn.Module], problem: str) -> None:
    model("odd")(factory)
    with pytest.raises(PluginError, match=f"model 'odd'.*{problem}"):
        build("odd", 7, SHAPE, 0)


def test_threads_that_build_at_once_get_what_each_would_get_alone() -> None:
    alone = [parameters(build("cnn", 10, SHAPE, seed)) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: parameters(build("cnn", 10, SHAPE, seed)), range(40)))
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize(
    "arch",
    [
        Architecture("cnn", 10),
        Architecture("cnn", 62, shape=Shape(3, 32, 32)),
        Architecture("mlp", 7, HIDDEN["mlp"], Shape(2, 9, 5)),
    ],
    ids=["cnn", "cnn in colour", "mlp"],
)
def test_the_compiled_kernel_begins_with_the_same_parameters_without_torch(arch: Architecture) -> None:
    module = build(arch.kind, arch.labels, arch.shape, 3, "model", "alpha")
    assert np.array_equal(initial_parameters(arch, 3, "model", "alpha"), parameters(module).numpy())


TWICE = nn.Linear(4, 4)


@pytest.mark.parametrize(
    ("module", "widths"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2)), (7,)),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), ()),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 2)), None),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 7, bias=False), nn.ReLU(), nn.Linear(7, 2)), None),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU()), None),
        (nn.Sequential(nn.Flatten(2), nn.Linear(4, 2)), None),
        (nn.Sequential(nn.Linear(4, 2)), None),
        (nn.Linear(4, 2), None),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 4).requires_grad_(False), nn.ReLU(), nn.Linear(4, 2)), None),
        (nn.Sequential(nn.Flatten(), TWICE, nn.ReLU(), TWICE), None),
    ],
)
def test_networks_of_fully_connected_layers_are_told_from_others(
    module: nn.Module, widths: tuple[int, ...] | None
) -> None:
    assert hidden_widths(module) == widths
