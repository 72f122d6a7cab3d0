"""Tests of what the compiled extension computes, or, where there is none, NumPy: both ways, one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest


@contextmanager
def without_extension(*modules: ModuleType) -> Iterator[None]:
    """Let modules do without the extension, as after an install without a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "_native", None)
        yield


@contextmanager
def vectors(width: int) -> Iterator[None]:
    """Let the extension compute with other vectors: 0 the baseline's, 1 those of AVX2, 2 the widest there are."""
    module = pytest.importorskip("fl._fused")
    if module.vectors(width) != width:
        pytest.skip("this processor lacks them")
    try:
        yield
    finally:
        module.vectors(2)


def compiled_and_not(*modules: ModuleType) -> Any:
    """Return a fixture, for a module of tests to hold, with which each test runs with the extension and without it."""

    @pytest.fixture(autouse=True, scope="module", params=["compiled", "NumPy"])
    def each(request: pytest.FixtureRequest) -> Iterator[None]:
        if request.param == "NumPy":
            with without_extension(*modules):
                yield
            return
        if any(module._native is None for module in modules):  # type: ignore[attr-defined]
            pytest.skip("fl._fused is not built")
        yield

    return each
