"""docs/any-market.md shows what docs/results/any-market.csv says, which is what benchmarks/any_market.py plays."""

from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from support.benchmarks import benchmark

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/results/any-market.csv"


@pytest.fixture(scope="module")
def markets() -> ModuleType:
    return benchmark("any_market")


def test_the_tables_are_those_of_the_file(markets: ModuleType) -> None:
    """If this fails: python benchmarks/any_market.py --out docs/results/any-market.csv --print"""
    assert markets.tables(RESULTS) in (ROOT / "docs/any-market.md").read_text()


def test_every_policy_has_all_seeds_in_every_market(markets: ModuleType) -> None:
    frame = pd.read_csv(RESULTS)
    found = {task: rows.seed.tolist() for task, rows in frame.groupby(["market", "mode", "policy"])}
    wanted = [(market, mode, name) for mode in ("resident", "visitor") for market in markets.POINTS
              for name in markets.PLAYERS if (mode, name) != ("resident", "oracle")]  # fmt: skip
    assert found == {task: list(range(markets.SEEDS)) for task in wanted}


@pytest.mark.parametrize(
    "task", [("3 services", "visitor", "mahdrl"), ("budget 5", "resident", "mahdrl"), ("K = 3", "visitor", "oracle")]
)
def test_a_line_of_the_file_can_be_played_again(markets: ModuleType, task: tuple[str, str, str]) -> None:
    frame = pd.read_csv(RESULTS, dtype=str)
    mine = frame[(frame.market == task[0]) & (frame["mode"] == task[1]) & (frame.policy == task[2])]
    [line] = markets.play(task, [3])
    assert [str(value) for value in line] == mine[mine.seed == "3"].iloc[0].tolist()
