"""One arithmetic: every variant of the kernel computes the same floats, to the last bit, on every processor.

The variants of this machine's processor are compared with each other, and all of them with digests that are written
down here. ``make test-arm`` compares the kernel for arm64 with the same digests, under an emulator. A digest changes
with the kernel's arithmetic alone; then all logs change, and the changelog says so.
"""

import hashlib
import shutil
import struct
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fl.arrays import ByteArray, Float32Array, Int32Array
from fl.data.dataset import Shape
from fl.training import fused
from fl.training.fused import Architecture
from support.tiers import examples

ROOT = Path(__file__).parents[3]
GREY, COLOUR = Shape(1, 28, 28), Shape(3, 32, 32)
SCALING: dict[str, Any] = {"scale": 1 / 255, "offset": -0.1}
needs_extension = pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
every_kernel = pytest.mark.parametrize("kernel", fused.kernels())


def words(n: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Random 64-bit words by SplitMix64, integer arithmetic alone: no generator's algorithm can change them."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw(arch: Architecture, n: int, seed: int = 0) -> tuple[Float32Array, ByteArray, ByteArray]:
    """Parameters from -1/16 to 1/16, n images and their labels."""
    integers = (words(arch.parameter_count, 3 * seed) >> np.uint64(40)).astype(np.int32) - 2**23
    parameters = integers.astype(np.float32) * np.float32(2**-27)
    size = arch.shape if arch.shape.channels > 1 else arch.shape[1:]
    pixels = (words(n * arch.inputs, 3 * seed + 1) >> np.uint64(56)).astype(np.uint8).reshape(n, *size)
    labels = (words(n, 3 * seed + 2) % np.uint64(arch.labels)).astype(np.uint8)
    return parameters, pixels, labels


def visits(epochs: int, n: int) -> Int32Array:
    return np.stack([np.argsort(words(n, 100 + epoch)) for epoch in range(epochs)]).astype(np.int32)


def exactly(x: Float32Array) -> list[Fraction]:
    return [Fraction(float(value)) for value in x]


def rounded(x: Fraction) -> np.float32:
    """The float32 nearest to x, to even on a tie, from integer arithmetic alone."""
    if x == 0:
        return np.float32(0)
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent  # now 2^exponent <= size < 2^(exponent + 1)
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    value = round(size / unit) * unit  # Python rounds ties to even
    result = np.float32(np.inf) if value >= 2**128 else np.float32(float(value))
    return -result if x < 0 else result


interesting = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-4, 4, width=32),
    st.integers(-(2**24), 2**24).map(float),
    st.sampled_from(
        [0.0, -0.0, 1.0, 1 + 2**-23, 1 - 2**-24, 2.0**-149, -(2.0**-149), 2.0**-126, 2.0**-75, 3.4028235e38]
    ),
)


@needs_extension
@every_kernel
@examples(150)
@given(data=st.lists(st.tuples(interesting, interesting, interesting), min_size=1, max_size=20))
def test_a_fused_multiply_add_is_rounded_once(kernel: str, data: list[tuple[float, float, float]]) -> None:
    a, b, c = np.array(data, dtype=np.float32).T.copy()
    found = fused.elementary("fma", a, b, c, kernel=kernel)
    for x, y, z, got in zip(exactly(a), exactly(b), exactly(c), found, strict=True):
        assert got == rounded(x * y + z)


@needs_extension
@every_kernel
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("small", [2.0**-60, -(2.0**-60), 2.0**-149, -(2.0**-149)])
def test_a_tie_that_double_precision_cannot_tell_from_its_neighbours(kernel: str, sign: int, small: float) -> None:
    """(1 + 2^-12)^2 is a tie of two floats; what is added is too small to move a double, but decides it."""
    a = np.array([sign * (1 + 2**-12)], dtype=np.float32)
    b = np.array([1 + 2**-12], dtype=np.float32)
    assert Fraction(float(a[0])) * Fraction(float(b[0])) == sign * (1 + Fraction(1, 2**11) + Fraction(1, 2**24))
    c = np.array([small], dtype=np.float32)
    expected = rounded(sign * (1 + Fraction(1, 2**11) + Fraction(1, 2**24)) + Fraction(small))
    assert fused.elementary("fma", a, b, c, kernel=kernel)[0] == expected


@needs_extension
@every_kernel
def test_subnormal_overflowing_and_infinite_multiply_adds(kernel: str) -> None:
    largest, tiny, infinite, nan = np.finfo(np.float32).max, 2.0**-149, np.inf, np.nan
    cases = [
        (largest, 2, 0, infinite),
        (largest, 2, -largest, largest),
        (-largest, 2, 0, -infinite),
        (tiny, 0.5, 0, 0),  # a tie, to even
        (tiny, 0.5, tiny, 2 * tiny),
        (3 * tiny, 0.5, 0, 2 * tiny),
        (2.0**-100, 2.0**-49, tiny, 2 * tiny),
        (infinite, 1, -largest, infinite),
        (infinite, 1, -infinite, nan),
        (infinite, 0, 1, nan),
        (1, 1, -infinite, -infinite),
        (nan, 1, 1, nan),
        (1, nan, 1, nan),
        (1, 1, nan, nan),
    ]
    a, b, c, expected = np.array(cases, dtype=np.float32).T.copy()
    assert np.array_equal(fused.elementary("fma", a, b, c, kernel=kernel), expected, equal_nan=True)


@needs_extension
@every_kernel
def test_the_exponential_is_within_one_and_a_half_units_in_the_last_place(kernel: str) -> None:
    x = np.concatenate(
        [np.linspace(-105, 90, 400_001), np.geomspace(1e-40, 1, 20_001), -np.geomspace(1e-40, 1, 20_001)]
    )
    x32 = x.astype(np.float32)
    exact = np.exp(x32.astype(np.float64))
    got = fused.elementary("exp", x32, kernel=kernel)
    finite = exact < np.finfo(np.float32).max
    unit = np.spacing(np.maximum(exact[finite], 2.0**-126).astype(np.float32)).astype(np.float64)
    assert (np.abs(got[finite] - exact[finite]) / unit).max() <= 1.5
    assert np.isinf(got[~finite]).all()


@needs_extension
@every_kernel
def test_the_exponential_of_what_is_far_away_or_no_number(kernel: str) -> None:
    x = np.array([-np.inf, -1e30, -104.5, 0, -0.0, 1e30, np.inf, np.nan], dtype=np.float32)
    expected = np.array([0, 0, 0, 1, 1, np.inf, np.inf, np.nan], dtype=np.float32)
    assert np.array_equal(fused.elementary("exp", x, kernel=kernel), expected, equal_nan=True)


@needs_extension
@every_kernel
def test_the_logarithm_is_within_a_unit_in_the_last_place_of_numpys(kernel: str) -> None:
    x = np.concatenate(
        [np.linspace(1e-3, 4, 100_001), np.linspace(1, 256, 100_001), np.geomspace(1e-320, 1e308, 100_001)]
    )
    exact = np.log(x)
    got = fused.elementary("log", x, kernel=kernel)
    assert (np.abs(got - exact) <= 1.5 * np.spacing(np.abs(exact))).all()  # half a unit is NumPy's own
    special = np.array([0, -0.0, -1, np.inf, np.nan])
    expected = np.array([-np.inf, -np.inf, np.nan, np.inf, np.nan])
    assert np.array_equal(fused.elementary("log", special, kernel=kernel), expected, equal_nan=True)


architectures = st.one_of(
    st.builds(Architecture, st.just("cnn"), st.integers(1, 62), shape=st.sampled_from([GREY, COLOUR])),
    st.builds(
        Architecture,
        st.just("mlp"),
        st.integers(1, 62),
        st.lists(st.integers(1, 70), max_size=3).map(tuple),
        shape=st.builds(Shape, st.integers(1, 3), st.integers(1, 20), st.integers(1, 20)),
    ),
)


@needs_extension
@examples(25)
@given(
    arch=architectures,
    n=st.integers(1, 40),
    batch_size=st.integers(1, 45),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    rate=st.sampled_from([0.01, 0.3, 1e6]),
    seed=st.integers(0, 1000),
)
def test_all_kernels_give_the_same_bytes(
    arch: Architecture, n: int, batch_size: int, momentum: float, rate: float, seed: int
) -> None:
    """Gradient, loss, trained weights and hits, with short last batches, and where training diverges."""
    parameters, pixels, labels = draw(arch, n, seed)
    found, step = set(), {"batch_size": batch_size, "learning_rate": rate, "momentum": momentum}
    for kernel in fused.kernels():
        gradient, loss = fused.gradient(arch, parameters, pixels, labels, **SCALING, kernel=kernel)
        trained, mean = fused.train(arch, parameters, pixels, labels, visits(2, n), **step, **SCALING, kernel=kernel)
        hits = fused.correct(arch, trained, pixels, labels, **SCALING, kernel=kernel)
        found.add((gradient.tobytes(), struct.pack("<d", loss), trained.tobytes(), struct.pack("<d", mean), hits))
    assert len(found) == 1


@needs_extension
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_the_same_bytes_too(bad: float) -> None:
    arch = Architecture("cnn", 10)
    parameters, pixels, labels = draw(arch, 5)
    for position in range(0, arch.parameter_count, 997):
        broken = parameters.copy()
        broken[position] = bad
        found = set()
        for kernel in fused.kernels():
            gradient, loss = fused.gradient(arch, broken, pixels, labels, **SCALING, kernel=kernel)
            found.add((gradient.tobytes(), struct.pack("<d", loss)))
        assert len(found) == 1, position


@needs_extension
@pytest.mark.parametrize("shape", [GREY, COLOUR])
@pytest.mark.parametrize("power", range(-40, -24, 3))
def test_gradients_that_underflow_are_the_same_bytes_too(power: int, shape: Shape) -> None:
    """Where products vanish, the sign of a zero would show which kernels add products with 0 and which do not."""
    arch = Architecture("cnn", 10, shape=shape)
    parameters, pixels, labels = draw(arch, 3)
    parameters *= np.float32(2.0**power)
    found = {
        fused.gradient(arch, parameters, pixels, labels, **SCALING, kernel=one)[0].tobytes() for one in fused.kernels()
    }
    assert len(found) == 1


@needs_extension
def test_a_thread_that_flushes_subnormals_gets_the_same_bytes_and_keeps_its_setting() -> None:
    arch = Architecture("mlp", 10, (20,))
    parameters, pixels, labels = draw(arch, 10)
    parameters *= np.float32(2**-120)  # so the first layer's gradient is subnormal
    usual, _ = fused.gradient(arch, parameters, pixels, labels, **SCALING)
    subnormal = torch.tensor(1e-40)
    assert torch.set_flush_denormal(True) or pytest.skip("this processor cannot flush subnormal numbers")
    try:
        flushed, _ = fused.gradient(arch, parameters, pixels, labels, **SCALING)
        assert (subnormal * 1.0).item() == 0
    finally:
        torch.set_flush_denormal(False)
    assert (np.abs(usual[usual != 0]) < 2.0**-126).any()
    assert flushed.tobytes() == usual.tobytes()


CASES = {
    "cnn-grey": Architecture("cnn", 10),
    "cnn-colour": Architecture("cnn", 10, shape=COLOUR),
    "mlp": Architecture("mlp", 47, (60, 33)),
}
GOLDEN = {
    "cnn-grey": "01eb8fa847f478d1c3c7cf36ce653186bb28437f34942e6a7a179c4cc0f0ea7b",
    "cnn-colour": "3d9409e38ebfa6f895dab1836472274967557025730a67149cb1ed5ef683ff4f",
    "mlp": "7fb20a6ffda464f5988cd31e9f3c95522bf52a006d9828bce61d81ae1bdb1f58",
}
"""SHA-256 of the weights that two epochs on 60 images end with, of the mean loss (a double) and of the hits."""
IMAGES, EPOCHS, BATCH, RATE, MOMENTUM = 60, 2, 25, 0.05, 0.5
STEP: dict[str, Any] = {"batch_size": BATCH, "learning_rate": RATE, "momentum": MOMENTUM}


def digest(trained: Float32Array, mean_loss: float, hits: int) -> str:
    return hashlib.sha256(trained.tobytes() + struct.pack("<dq", mean_loss, hits)).hexdigest()


@needs_extension
@every_kernel
@pytest.mark.parametrize("case", CASES)
def test_trained_weights_have_the_digest_that_is_written_down(kernel: str, case: str) -> None:
    arch = CASES[case]
    parameters, pixels, labels = draw(arch, IMAGES)
    trained, loss = fused.train(
        arch, parameters, pixels, labels, visits(EPOCHS, IMAGES), **STEP, **SCALING, kernel=kernel
    )
    hits = fused.correct(arch, trained, pixels, labels, **SCALING, kernel=kernel)
    assert digest(trained, loss, hits) == GOLDEN[case]


@pytest.fixture(scope="module")
def arm_driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the kernel for arm64, cross-compiled, under an emulator."""
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("needs Debian's packages g++-aarch64-linux-gnu and qemu-user")
    driver, native = tmp_path_factory.mktemp("arm") / "driver", ROOT / "fl" / "_native"
    sources = [str(Path(__file__).parent / "native" / "driver.cpp"), str(native / "kernel_portable.cpp")]
    flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-static", f"-I{native}"]
    subprocess.run([compiler, *flags, *sources, "-o", str(driver)], check=True)
    return [emulator, str(driver)]


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_for_arm64_gives_the_same_digest(arm_driver: list[str], case: str) -> None:
    arch = CASES[case]
    parameters, pixels, labels = draw(arch, IMAGES)
    images = (arch.kind == "cnn", arch.shape.channels, arch.inputs, len(arch.widths), len(parameters), IMAGES)
    sizes = (*images, EPOCHS, IMAGES, BATCH, IMAGES)
    given_to_it = b"".join(
        [
            struct.pack("<10i", *sizes),
            struct.pack("<4f", *SCALING.values(), RATE, MOMENTUM),
            np.array(arch.widths, dtype=np.int32).tobytes(),
            *(array.tobytes() for array in (parameters, pixels, labels, visits(EPOCHS, IMAGES))),
        ]
    )
    done = subprocess.run(arm_driver, input=given_to_it, capture_output=True, check=True)
    trained = np.frombuffer(done.stdout[: parameters.nbytes], dtype=np.float32)
    total_loss, hits = struct.unpack("<dq", done.stdout[parameters.nbytes :])
    assert digest(trained, total_loss / (EPOCHS * IMAGES), hits) == GOLDEN[case]
