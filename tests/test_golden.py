"""The same bytes on every machine: the tables of built-in scenarios have the digests that were once written down.

``tools/golden`` computes them and says when they may be renewed (``make golden``).
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fl.training import fused
from golden import Case, cases, digest, recorded
from support.tiers import slow

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


needs_kernel = pytest.mark.skipif(not fused.available(), reason="no compiled kernel: plain torch promises no bytes")


def marks(case: Case) -> list[pytest.MarkDecorator]:
    """Real training needs the kernel, and takes longer: the fast tier plays one run of it.

    What ``private`` draws besides does not depend on the policy: there it plays the sensitive ones. Of the bidders of
    display advertising, which differ in a formula, it plays two.
    """
    if case.policy in ("rtb-const", "rtb-mcpc", "rtb-ortb", "rtb-rand"):
        return [pytest.mark.slow, *([needs_kernel] if case.scenario == "quickstart" else [])]
    if case.scenario == "private" and case.policy not in SENSITIVE:
        return [pytest.mark.slow]
    if case.scenario != "quickstart":
        return []
    return [needs_kernel] if case.policy == "mahdrl" else [needs_kernel, pytest.mark.slow]


@pytest.mark.parametrize("case", [pytest.param(case, id="-".join(case), marks=marks(case)) for case in cases()])
def test_the_tables_are_those_that_were_written_down(case: Case) -> None:
    assert digest(case) == recorded()[case.scenario][case.policy]


@pytest.mark.slow
@needs_kernel
def test_another_kernel_writes_the_same_tables() -> None:
    """``tests/fl/test_arithmetic.py`` compares all of them; the portable one takes minutes for a run."""
    others = [name for name in fused.kernels()[1:] if name != "fused-portable"]
    if not others:
        pytest.skip("this processor has one fast kernel")
    found = golden("quickstart", ["hqfa"], {"FLMARKET_KERNEL": others[0].removeprefix("fused-")})
    assert found == {"quickstart": {"hqfa": recorded()["quickstart"]["hqfa"]}}


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the settings are those of x86-64")
@pytest.mark.parametrize(
    "settings",
    [
        {"NPY_DISABLE_CPU_FEATURES": simd(), "OPENBLAS_CORETYPE": "Prescott", "ATEN_CPU_CAPABILITY": "default"},
        {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"},
        {"OPENBLAS_CORETYPE": "SkylakeX"},
    ],
    ids=["no SIMD", "Haswell", "SkylakeX"],
)
def test_neither_numpy_s_extensions_nor_the_blas_change_a_byte(settings: dict[str, str]) -> None:
    """In a process of its own, because libraries choose their code when they are loaded."""
    if settings["OPENBLAS_CORETYPE"] == "SkylakeX" and "AVX512" not in simd():
        pytest.skip("this processor has no AVX-512")
    found = golden("paper", SENSITIVE, settings)
    assert found == {"paper": {policy: recorded()["paper"][policy] for policy in SENSITIVE}}


@pytest.mark.parametrize("scenario", ["scarce", *slow("private")])
def test_without_the_compiled_extension_the_market_is_the_same(scenario: str) -> None:
    """NumPy then draws the world and computes exp and log. Draws break ties in ``scarce``, and blur ``private``."""
    start = "import runpy, sys; sys.modules['fl._fused'] = None; runpy.run_module('golden', run_name='__main__')"
    found = golden(scenario, ["lcfa", "hqfa"], {}, start=["-c", start])
    assert found == {scenario: {policy: recorded()[scenario][policy] for policy in ("lcfa", "hqfa")}}


def golden(
    scenario: str, policies: Sequence[str], settings: dict[str, str], start: Sequence[str] = ("-m", "golden")
) -> dict[str, dict[str, str]]:
    """Return the digests that a process with other environment variables computes."""
    arguments = [word for policy in policies for word in ("--policy", policy)]
    done = subprocess.run(
        [sys.executable, "-P", *start, scenario, *arguments],
        env={
            **os.environ,
            **settings,
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tools", ROOT / "tests" / "lib"))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found
