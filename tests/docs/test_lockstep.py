"""The page on markets in lockstep: its example runs, and its arrays have the shapes that it says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lockstep.md"


def test_the_example_runs() -> None:
    [example] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 - our own page
    for name, array in (("observations", "104"), ("actions", "40")):
        assert names[name].shape == (256 * 3, int(array))
        assert re.search(rf"{name}.*# \[256 \* 3, {array}\]", example)
    assert names["observations"].dtype == np.float32
    assert names["rewards"].shape == (256 * 3,)
