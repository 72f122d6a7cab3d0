"""Research scripts are imported by their names, and a small league is shared."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from flmarket.benchmark.league.league import League
from scenarios.loader import load


@pytest.fixture(scope="session")
def small_league() -> Callable[..., League]:
    """``small_league("hqfa", "lcfa", seeds=[0, 1])``: six rounds of the paper's market."""

    def make(*policies: str, seeds: list[int] | None = None, **settings: object) -> League:
        changes = {"training.backend": "surrogate", "rounds": 6, **settings}
        return League.of(load("paper", changes), policies, seeds or [0, 1, 2])

    return make
