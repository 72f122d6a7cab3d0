"""The two tiers: ``make test`` runs what is not marked ``slow``, ``make test-all`` the rest, and properties again."""

from typing import Any

import pytest
from hypothesis import settings


def slow(*parameters: Any) -> list[Any]:
    """Parameters with which a test runs in the slow tier only; a tuple holds the values of several names."""
    values = [one if isinstance(one, tuple) else (one,) for one in parameters]
    return [pytest.param(*several, marks=pytest.mark.slow) for several in values]


def examples(number: int) -> settings:
    """So many examples of a property in the slow tier, and a fifth of them in the fast one."""
    return settings(max_examples=max(5, number * settings().max_examples // 100))
