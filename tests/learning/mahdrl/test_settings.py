"""Ranges of hyper-parameters: what a user may ask for."""

import math
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from learning.mahdrl.settings import Count, NotNegative, Part, Positive, Rate


@pytest.mark.parametrize(
    ("kind", "valid", "invalid"),
    [
        (Count, [1, 10_000_000], [0, -1, 10_000_001, 1.5]),
        (Positive, [1e-300, 1e300], [0.0, -1.0, math.inf, math.nan]),
        (NotNegative, [0.0, 1e300], [-1e-300, math.inf, math.nan]),
        (Part, [0.0, 1.0], [-1e-9, 1.0 + 1e-9, math.inf, math.nan]),
        (Rate, [1e-300, 1.0], [0.0, 1.0 + 1e-9, math.inf, math.nan]),
    ],
    ids=["count", "positive", "not negative", "part", "rate"],
)
def test_a_range_has_its_ends_and_nothing_infinite(kind: Any, valid: list[float], invalid: list[float]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    assert [adapter.validate_python(value, strict=True) for value in valid] == valid
    for value in invalid:
        with pytest.raises(ValidationError):
            adapter.validate_python(value, strict=True)
