"""docs/tutorials/private.md shows what research/results/private.csv says, which is what research/private.py plays."""

from pathlib import Path

import pandas as pd
import private
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/private.csv"
PAGE = ROOT / "docs/tutorials/private.md"


def in_page(table: str) -> bool:
    """Whether the page has all rows of a table."""
    shown = PAGE.read_text().splitlines()
    return all(row in shown for row in table.splitlines() if set(row) - set("|-"))


def test_the_table_of_policies_is_that_of_the_file() -> None:
    """If this fails: python research/private.py --out research/results/private.csv --print"""
    assert in_page(private.played(RESULTS))


@pytest.mark.slow
def test_the_table_of_what_is_told_can_be_made_again() -> None:
    assert in_page(private.told(private.SEEDS))


def test_every_policy_has_all_seeds() -> None:
    frame = pd.read_csv(RESULTS)
    found = {pair: rows.seed.tolist() for pair, rows in frame.groupby(["market", "policy"])}
    wanted = [(market, policy) for market in private.PLAYED for policy in private.POLICIES]
    assert found == {pair: list(range(private.SEEDS)) for pair in wanted}


@pytest.mark.parametrize(
    ("market", "policy"), [("noise 0.2", "dearest"), ("private", "mahdrl-single"), ("private", "hqfa")]
)
def test_a_line_of_the_file_can_be_played_again(market: str, policy: str) -> None:
    frame = pd.read_csv(RESULTS, dtype=str)
    mine = frame[(frame.market == market) & (frame.policy == policy) & (frame.seed == "3")]
    [line] = private.play(market, policy, [3])
    assert [str(value) for value in line] == mine.iloc[0].tolist()


def test_in_paper_the_dearest_clients_are_those_of_d_first() -> None:
    """The privilege is worth nothing there; that is what the page says of all 20 seeds."""
    wide = pd.read_csv(RESULTS).pivot_table("auc", ["market", "seed"], "policy")
    assert (wide.loc["paper"]["dearest"] == wide.loc["paper"]["d-first"]).all()
    assert (wide.loc["private"]["dearest"] < wide.loc["private"]["d-first"]).all()
