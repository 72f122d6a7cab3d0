"""The same bytes on every machine: the tables of built-in scenarios have the digests that were once written down.

``tests/lib/golden`` computes them and says when they may be renewed (``make golden``).
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fl import fused
from fl.datasets import info
from fl.kernels import kernel_for
from golden import Case, cases, digest, recorded

ROOT = Path(__file__).parents[1]

SENSITIVE = ("hqfa", "mahdrl", "mahdrl-paper", "oort", "ucb")
"""Policies that decide by products, powers and logarithms."""


def simd() -> str:
    """Return the extensions of the processor that NumPy chooses code by, as NPY_DISABLE_CPU_FEATURES wants them."""
    try:
        from numpy._core import _multiarray_umath as umath
    except ImportError:  # before NumPy 2
        from numpy.core import _multiarray_umath as umath
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])


@pytest.mark.parametrize("case", cases(), ids="-".join)
def test_the_tables_are_those_that_were_written_down(case: Case) -> None:
    if case.scenario == "quickstart" and kernel_for("cnn", info("digits").shape, "auto") == "reference":
        pytest.skip("no compiled kernel here; plain torch promises no bytes")
    assert digest(case) == recorded()[case.scenario][case.policy]


@pytest.mark.parametrize("variant", [name for name in fused.kernels() if name != "fused-portable"])
def test_every_variant_of_the_kernel_writes_the_same_tables(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the portable one, which takes minutes where the processor would run a faster one: test_arithmetic.py."""
    monkeypatch.setenv("FLMARKET_KERNEL", variant.removeprefix("fused-"))
    assert digest(Case("quickstart", "hqfa")) == recorded()["quickstart"]["hqfa"]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the settings are those of x86-64")
@pytest.mark.parametrize(
    "settings",
    [
        {"NPY_DISABLE_CPU_FEATURES": simd(), "OPENBLAS_CORETYPE": "Prescott", "ATEN_CPU_CAPABILITY": "default"},
        {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_NUM_THREADS": "2"},
        {"OPENBLAS_CORETYPE": "SkylakeX"},
    ],
    ids=["no SIMD", "Haswell", "SkylakeX"],
)
def test_neither_numpy_s_extensions_nor_the_blas_change_a_byte(settings: dict[str, str]) -> None:
    """In a process of its own, because libraries choose their code when they are loaded."""
    if settings["OPENBLAS_CORETYPE"] == "SkylakeX" and "AVX512" not in simd():
        pytest.skip("this processor has no AVX-512")
    policies = [word for policy in SENSITIVE for word in ("--policy", policy)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "golden", "paper", *policies],
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "lib")))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"paper": {policy: recorded()["paper"][policy] for policy in SENSITIVE}}
