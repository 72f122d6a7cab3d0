"""The fused kernels against torch's autograd and SGD: every variant this CPU can run.

That the variants agree with each other to the last bit is shown in test_arithmetic.py.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

from fl.arrays import ByteArray, Float32Array, FloatArray
from fl.data.dataset import Shape
from fl.training import fused
from fl.training.fused import Architecture
from flmarket.core.errors import InputError
from support.tiers import examples, slow

needs_extension = pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
every_kernel = pytest.mark.parametrize("kernel", fused.kernels())
fast_kernels = pytest.mark.parametrize(
    "kernel", [k for k in fused.kernels() if k != "fused-portable"] or fused.kernels()
)
"""Not the one with multiply-adds in software, a hundred times slower: test_arithmetic.py compares its bytes."""
CNN = Architecture("cnn", 10)
COLOUR = Architecture("cnn", 10, shape=Shape(3, 32, 32))
SCALING: dict[str, Any] = {"scale": 1 / 255, "offset": -0.1}
PLAIN: dict[str, Any] = {"batch_size": 10, "learning_rate": 0.05, "momentum": 0.0, **SCALING}


def build(arch: Architecture, seed: int = 0) -> nn.Sequential:
    """Build the same network in torch, with torch's initial weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        if arch.kind == "cnn":
            for maps in ((arch.shape.channels, 6), (6, 16)):
                layers += [nn.Conv2d(*maps, 5), nn.ReLU(), nn.MaxPool2d(2)]
        layers.append(nn.Flatten())
        features = {28: 256, 32: 400}[arch.shape.height] if arch.kind == "cnn" else arch.inputs
        for inputs, outputs in pairwise((features, *arch.widths)):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def flat(model: nn.Module) -> Float32Array:
    vector: Float32Array = nn.utils.parameters_to_vector(model.parameters()).detach().float().numpy()
    return vector


def draw(arch: Architecture, n: int, seed: int = 0) -> tuple[ByteArray, ByteArray]:
    """Random images [n, 28, 28] or [n, 3, 32, 32], and labels [n]."""
    random = np.random.default_rng(seed)
    size = arch.shape if arch.shape.channels > 1 else arch.shape[1:]
    pixels = random.integers(0, 256, (n, *size), dtype=np.uint8)
    return pixels, random.integers(0, arch.labels, n, dtype=np.uint8)


def inputs(pixels: ByteArray, scale: float, offset: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    x = torch.from_numpy(pixels).to(dtype) * scale + offset
    return x if x.ndim == 4 else x.unsqueeze(1)


def autograd(model: nn.Module, x: torch.Tensor, labels: ByteArray) -> tuple[FloatArray, float]:
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(x), torch.from_numpy(labels).long())
    loss.backward()  # type: ignore[no-untyped-call]
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return gradient.numpy(), loss.item()


def kink_distance(model: nn.Sequential, x: torch.Tensor) -> float:
    """Return how near any ReLU is to its kink, or any positive maximum of a pooling window to a tie."""
    nearest = float("inf")
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.ReLU):
                nearest = min(nearest, x.abs().min().item())
            if isinstance(layer, nn.MaxPool2d):
                windows = x.unfold(2, 2, 2).unfold(3, 2, 2).flatten(-2).sort(dim=-1).values
                gaps = (windows[..., 3] - windows[..., 2])[windows[..., 3] > 0]
                nearest = min([nearest, *gaps.flatten().tolist()])
            x = layer(x)
    return nearest


architectures = st.one_of(
    st.builds(Architecture, st.just("cnn"), st.sampled_from([2, 10, 47, 62]), shape=st.sampled_from(fused.SHAPES)),
    st.builds(
        Architecture,
        st.just("mlp"),
        st.sampled_from([2, 10, 47]),
        st.lists(st.integers(1, 70), max_size=3).map(tuple),
        shape=st.sampled_from([*fused.SHAPES, Shape(1, 1, 1), Shape(2, 5, 9)]),
    ),
)
seeds = st.integers(0, 2**32 - 1)
thorough = examples(40)


@needs_extension
@every_kernel
@thorough
@given(arch=architectures, n=st.one_of(st.integers(1, 12), st.integers(13, 70)), seed=seeds)
def test_gradient_equals_autograd(kernel: str, arch: Architecture, n: int, seed: int) -> None:
    """Within 1e-6, or 1e-6 of the largest component where that is above 1, of autograd in double precision."""
    model = build(arch, seed)
    parameters = flat(model)
    pixels, labels = draw(arch, n, seed)
    model.double()
    x = inputs(pixels, **SCALING)
    assume(kink_distance(model, x) > 3e-7)  # nearer, single precision may be on the other side, with its derivative
    expected, expected_loss = autograd(model, x, labels)

    gradient, loss = fused.gradient(arch, parameters, pixels, labels, **SCALING, kernel=kernel)

    assert np.abs(gradient - expected).max() <= 1e-6 * max(1, np.abs(expected).max())
    assert loss == pytest.approx(expected_loss, rel=1e-6, abs=1e-6)


@needs_extension
@every_kernel
@thorough
@given(n=st.integers(1, 40), seed=seeds)
def test_ties_go_to_the_window_position_that_torch_takes(kernel: str, n: int, seed: int) -> None:
    """Weights -1, 0, 1 (times powers of two) and pixels 0 to 3: sums are exact in any order, and tie all the time."""
    model = build(CNN).double()
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            ternary = torch.from_numpy(random.integers(-1, 2, parameter.shape))
            parameter.copy_(ternary / 8)
    pixels = random.integers(0, 4, (n, 28, 28), dtype=np.uint8)
    labels = random.integers(0, 10, n, dtype=np.uint8)
    scaling: dict[str, Any] = {"scale": 0.25, "offset": 0.0}
    expected, _ = autograd(model, inputs(pixels, **scaling), labels)

    gradient, _ = fused.gradient(CNN, flat(model), pixels, labels, **scaling, kernel=kernel)

    assert np.abs(gradient - expected).max() <= 1e-6 * max(1, np.abs(expected).max())


@needs_extension
@fast_kernels
@pytest.mark.parametrize("momentum", [*slow(0.0), 0.9])
@pytest.mark.parametrize("batch_size", [10, *slow(32, 50)])
@pytest.mark.parametrize("arch", [CNN, COLOUR, Architecture("mlp", 47, (60, 33))], ids=["cnn", "cnn-colour", "mlp"])
def test_fifty_steps_stay_with_torch(kernel: str, arch: Architecture, batch_size: int, momentum: float) -> None:
    """25 steps in each of two epochs, the last on a short batch."""
    n = 25 * batch_size - 3
    pixels, labels = draw(arch, n)
    order = np.stack([np.random.default_rng(e).permutation(n) for e in range(2)]).astype(np.int32)
    model = build(arch)
    start = flat(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.02, momentum=momentum)
    x, y = inputs(pixels, **SCALING, dtype=torch.float32), torch.from_numpy(labels).long()
    seen = []
    for row in order:
        for first in range(0, n, batch_size):
            batch = torch.from_numpy(row[first : first + batch_size]).long()
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            seen.append(loss.item() * len(batch))

    step = {"batch_size": batch_size, "learning_rate": 0.02, "momentum": momentum}
    parameters, mean_loss = fused.train(arch, start, pixels, labels, order, **step, **SCALING, kernel=kernel)

    assert len(seen) == 50
    assert np.abs(parameters - start).max() > 1e-2
    # In colour, torch is 3e-4 away from its own result in double precision (batch 32, momentum 0.9), the kernel 1e-4.
    assert np.abs(parameters - flat(model)).max() < (1e-4 if arch.shape == CNN.shape else 5e-4)
    assert mean_loss == pytest.approx(sum(seen) / (2 * n), rel=1e-5)


@needs_extension
@every_kernel
@thorough
@given(
    arch=architectures,
    n=st.integers(1, 40),
    batch_size=st.integers(1, 45),
    seed=seeds,
    momentum=st.sampled_from([0.0, 0.5]),
)
def test_training_is_one_gradient_step_per_batch(
    kernel: str, arch: Architecture, n: int, batch_size: int, seed: int, momentum: float
) -> None:
    """To the last bit, in two fused multiply-adds: v = momentum * v + gradient, parameters = -rate * v + parameters."""
    pixels, labels = draw(arch, n, seed)
    order = np.random.default_rng(seed).permutation(n).astype(np.int32)
    start = flat(build(arch, seed))
    expected = start.copy()
    velocity = np.zeros_like(start)
    for first in range(0, n, batch_size):
        batch = order[first : first + batch_size]
        gradient, _ = fused.gradient(arch, expected, pixels[batch], labels[batch], **SCALING, kernel=kernel)
        keep, down = np.full_like(start, momentum), np.full_like(start, -0.01)
        velocity = fused.elementary("fma", keep, velocity, gradient, kernel=kernel)
        expected = fused.elementary("fma", down, velocity, expected, kernel=kernel)

    step = {"batch_size": batch_size, "learning_rate": 0.01, "momentum": momentum}
    parameters, _ = fused.train(arch, start, pixels, labels, order[None], **step, **SCALING, kernel=kernel)

    assert parameters.tobytes() == expected.tobytes()


@needs_extension
@every_kernel
@thorough
@given(arch=architectures, n=st.integers(1, 80), data=st.data(), seed=seeds)
def test_evaluation_counts_what_torch_counts_however_it_is_split(
    kernel: str, arch: Architecture, n: int, data: st.DataObject, seed: int
) -> None:
    model = build(arch, seed)
    parameters = flat(model)
    pixels, labels = draw(arch, n, seed)
    with torch.no_grad():
        logits = model.double()(inputs(pixels, **SCALING))
    best = logits.topk(2).values
    assume((best[:, 0] - best[:, 1]).min() > 1e-6)
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=3), label="cuts")})

    whole = fused.correct(arch, parameters, pixels, labels, **SCALING, kernel=kernel)
    parts = [
        fused.correct(arch, parameters, pixels[a:b], labels[a:b], **SCALING, kernel=kernel) for a, b in pairwise(cuts)
    ]

    assert whole == sum(parts) == int((logits.argmax(1).numpy() == labels).sum())


@pytest.mark.slow
@needs_extension
@every_kernel
def test_threads_get_the_bits_that_a_single_one_gets(kernel: str) -> None:
    pixels, labels = draw(CNN, 120)
    order = np.random.default_rng(0).permutation(120).astype(np.int32)[None]
    jobs = [(arch, flat(build(arch, seed))) for seed in range(8) for arch in (CNN, Architecture("mlp", 10, (30,)))]

    def run(job: tuple[Architecture, Float32Array]) -> tuple[bytes, float, int]:
        arch, start = job
        parameters, loss = fused.train(arch, start, pixels, labels, order, **PLAIN, kernel=kernel)
        return parameters.tobytes(), loss, fused.correct(arch, parameters, pixels, labels, **SCALING, kernel=kernel)

    one_by_one = [run(job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, jobs)) == one_by_one


@needs_extension
@every_kernel
def test_order_may_name_some_images_and_the_start_stays_untouched(kernel: str) -> None:
    pixels, labels = draw(CNN, 50)
    start = flat(build(CNN))
    before = start.copy()
    order = np.arange(30, 50, dtype=np.int32)[None]
    labels[:30] = 255  # never visited, so never read as labels
    some, loss = fused.train(CNN, start, pixels, labels, order, **PLAIN, kernel=kernel)
    own, own_loss = fused.train(CNN, start, pixels[30:], labels[30:], order - 30, **PLAIN, kernel=kernel)
    assert some.tobytes() == own.tobytes()
    assert loss == own_loss
    assert start.tobytes() == before.tobytes()


@needs_extension
@every_kernel
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_parameter_that_is_not_finite_reaches_the_loss_as_in_torch(kernel: str, bad: float) -> None:
    pixels, labels = draw(CNN, 5)
    pixels[:, :4] = 0
    for position in range(0, CNN.parameter_count, 997):
        parameters = flat(build(CNN))
        parameters[position] = bad
        model = build(CNN)
        nn.utils.vector_to_parameters(torch.from_numpy(parameters.copy()), model.parameters())
        with torch.no_grad():
            y = torch.from_numpy(labels).long()
            expected = nn.functional.cross_entropy(model(inputs(pixels, **SCALING, dtype=torch.float32)), y).item()
        _, loss = fused.gradient(CNN, parameters, pixels, labels, **SCALING, kernel=kernel)
        assert np.isfinite(loss) == np.isfinite(expected), position


@needs_extension
@every_kernel
@pytest.mark.parametrize("position", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_not_a_number_wins_a_pooling_window_wherever_it_stands(kernel: str, position: tuple[int, int]) -> None:
    """Minus infinity times a pixel that is 0 in one place of each window, and that the ReLU would hide elsewhere."""
    parameters = flat(build(CNN))
    parameters[0] = -np.inf
    pixels = np.full((1, 28, 28), 255, dtype=np.uint8)
    pixels[:, position[0] :: 2, position[1] :: 2] = 0
    labels = np.zeros(1, dtype=np.uint8)
    _, loss = fused.gradient(CNN, parameters, pixels, labels, scale=1 / 255, offset=0.0, kernel=kernel)
    assert np.isnan(loss)


@needs_extension
@every_kernel
@examples(10)
@given(labels=st.integers(2, 5), hidden=st.sampled_from([(), (33,)]), width=st.integers(1, 40), seed=seeds)
def test_features_that_are_scaled_pixels_give_the_bytes_that_the_pixels_give(
    kernel: str, labels: int, hidden: tuple[int, ...], width: int, seed: int
) -> None:
    arch = Architecture("mlp", labels, hidden, Shape(1, 1, width))
    pixels, targets = draw(arch, 25, seed)
    scaled = pixels.astype(np.float32) * np.float32(SCALING["scale"]) + np.float32(SCALING["offset"])
    start = flat(build(arch))
    of_pixels: dict[str, Any] = {**SCALING, "kernel": kernel}
    as_it_is: dict[str, Any] = {"scale": 1.0, "offset": 0.0, "kernel": kernel}
    order = np.random.default_rng(seed).integers(25, size=(2, 17), dtype=np.int32)
    steps: dict[str, Any] = {"batch_size": 7, "learning_rate": 0.1, "momentum": 0.5}
    for expected, found in (
        (
            fused.gradient(arch, start, pixels, targets, **of_pixels),
            fused.gradient(arch, start, scaled, targets, **as_it_is),
        ),
        (
            fused.train(arch, start, pixels, targets, order, **steps, **of_pixels),
            fused.train(arch, start, scaled, targets, order, **steps, **as_it_is),
        ),
    ):
        assert (found[0].tobytes(), found[1]) == (expected[0].tobytes(), expected[1])
    hits = fused.correct(arch, start, pixels, targets, **of_pixels)
    assert fused.correct(arch, start, scaled, targets, **as_it_is) == hits


@needs_extension
@every_kernel
def test_the_first_of_equal_logits_counts(kernel: str) -> None:
    pixels, labels = draw(CNN, 100)
    parameters = np.zeros(CNN.parameter_count, dtype=np.float32)
    assert fused.correct(CNN, parameters, pixels, labels, **SCALING, kernel=kernel) == (labels == 0).sum()


@needs_extension
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("parameters", lambda a: a[:-1], r"shape \[44426\]"),
        ("parameters", lambda a: a.astype(np.float64), "must be float32"),
        ("parameters", lambda a: np.repeat(a, 2)[::2], "contiguous"),
        ("parameters", lambda a: a.tolist(), "NumPy array"),
        ("pixels", lambda a: a.reshape(-1, 784), "shape"),
        ("pixels", lambda a: a[:, :, :27], "shape"),
        ("pixels", lambda a: a[:, :, ::-1], "contiguous"),
        ("pixels", lambda a: a.astype(np.int8), "must be uint8"),
        ("pixels", lambda a: a.astype(np.float32), "must be uint8"),
        ("pixels", lambda a: a[:0], "shape"),
        ("labels", lambda a: a[:-1], "shape"),
        ("labels", lambda a: a.astype(np.int64), "must be uint8"),
        ("labels", lambda a: a + np.uint8(10), "label 1[0-9] of image"),
        ("order", lambda a: a[0], "shape"),
        ("order", lambda a: a[:, :0], "shape"),
        ("order", lambda a: a[:0], "shape"),
        ("order", lambda a: a.astype(np.int64), "must be int32"),
        ("order", lambda a: a + np.int32(1), "order names image 12"),
        ("order", lambda a: a - np.int32(1), "order names image -1"),
        ("order", lambda a: np.asfortranarray(np.concatenate([a, a])), "contiguous"),
        ("batch_size", lambda _: 0, "batch_size"),
        ("kernel", lambda _: "fused-abacus", "kernel must be one of"),
    ],
)
def test_what_a_kernel_could_trip_over_is_a_value_error(name: str, value: Callable[[Any], Any], message: str) -> None:
    pixels, labels = draw(CNN, 12)
    arguments: dict[str, Any] = {
        "parameters": flat(build(CNN)),
        "pixels": pixels,
        "labels": labels,
        "order": np.arange(12, dtype=np.int32)[None],
        "kernel": None,
        **PLAIN,
    }
    arguments[name] = value(arguments[name])
    with pytest.raises(ValueError, match=message):
        fused.train(CNN, **arguments)
    if name in ("parameters", "pixels", "labels", "kernel"):
        shared = {k: arguments[k] for k in ("parameters", "pixels", "labels", "kernel", "scale", "offset")}
        with pytest.raises(ValueError, match=message):
            fused.gradient(CNN, **shared)
        with pytest.raises(ValueError, match=message):
            fused.correct(CNN, **shared)


@pytest.mark.parametrize(
    ("kind", "labels", "hidden"), [("cnn", 1, ()), ("cnn", 256, ()), ("mlp", 10, (1, 65536)), ("mlp", 10, (1,) * 15)]
)
def test_the_largest_and_the_smallest_architectures(kind: Any, labels: int, hidden: tuple[int, ...]) -> None:
    layers = (120, 84) if kind == "cnn" else hidden
    assert Architecture(kind, labels, hidden).widths == (*layers, labels)


@needs_extension
@pytest.mark.parametrize(
    ("arch", "problem"),
    [
        (Architecture("cnn", 0), "layer widths must be 1 to 65536"),
        (Architecture("cnn", 257), "at most 256 labels"),
        (Architecture("mlp", 10, (0,)), "layer widths must be 1 to 65536"),
        (Architecture("mlp", 10, (65537,), Shape(1, 1, 1)), "layer widths must be 1 to 65536"),
        (Architecture("mlp", 10, (1,) * 16), "a network has 1 to 16 fully connected layers"),
        (Architecture("cnn", 10, shape=Shape(3, 28, 28)), "no kernel for images of that shape"),
        (Architecture("cnn", 10, shape=Shape(1, 32, 32)), "no kernel for images of that shape"),
    ],
)
def test_an_impossible_architecture_is_refused(arch: Architecture, problem: str) -> None:
    parameters, labels = np.zeros(arch.parameter_count, np.float32), np.zeros(1, np.uint8)
    pixels = np.zeros((1, *(arch.shape if arch.shape.channels > 1 else arch.shape[1:])), np.uint8)
    with pytest.raises(ValueError, match=problem):
        fused.correct(arch, parameters, pixels, labels, **SCALING)


@pytest.mark.parametrize("shape", [Shape(0, 28, 28), Shape(3, 4096, 4096)])
def test_images_that_are_too_large_or_empty_are_refused(shape: Shape) -> None:
    assert "on images of 1 to 16777216 numbers" in str(fused.obstacle("mlp", shape))


@needs_extension
def test_the_environment_picks_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLMARKET_KERNEL", raising=False)
    assert fused.kernel_name() == fused.kernels()[0]
    assert fused.kernels()[-1] == "fused-portable"
    pixels, labels = draw(CNN, 20)
    order = np.arange(20, dtype=np.int32)[None]
    for name in fused.kernels():
        monkeypatch.setenv("FLMARKET_KERNEL", name.removeprefix("fused-"))
        assert fused.kernel_name() == name
        by_environment, _ = fused.train(CNN, flat(build(CNN)), pixels, labels, order, **PLAIN)
        by_argument, _ = fused.train(CNN, flat(build(CNN)), pixels, labels, order, **PLAIN, kernel=name)
        assert by_environment.tobytes() == by_argument.tobytes()
    monkeypatch.setenv("FLMARKET_KERNEL", "abacus")
    with pytest.raises(InputError, match="FLMARKET_KERNEL=abacus"):
        fused.kernel_name()


def test_without_the_extension_nothing_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_kernels", {})
    assert not fused.available()
    assert fused.kernels() == ()
    with pytest.raises(RuntimeError, match="compiler"):
        fused.kernel_name()
