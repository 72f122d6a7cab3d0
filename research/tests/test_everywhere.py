"""results/everywhere.csv is whole, and lines of it can be played again."""

import re
from pathlib import Path

import everywhere
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/everywhere.csv"


def test_all_that_is_to_be_played_has_been() -> None:
    found = set(pd.read_csv(RESULTS)[["market", "mode", "policy"]].itertuples(index=False, name=None))
    alone = {(market, mode) for market, mode, _ in everywhere.tasks() if not everywhere.lineups(market, mode, "hqfa")}
    assert found == {task for task in everywhere.tasks() if task[:2] not in alone}


@pytest.mark.parametrize(
    "task",
    [
        ("fresh-0", "visitor", "mahdrl"),
        ("fresh-34", "resident", "mahdrl at bids"),
        ("fresh-5", "resident", "rtb-ortb"),
        ("tight-101", "visitor", "mahdrl far"),
        ("trained-145", "resident", "hqfa"),
        ("unequal", "visitor", "rtb-lin"),
    ],
)
def test_a_line_of_the_file_can_be_played_again(task: tuple[str, str, str]) -> None:
    frame = pd.read_csv(RESULTS, dtype=str, keep_default_na=False)
    mine = frame[(frame.market == task[0]) & (frame["mode"] == task[1]) & (frame.policy == task[2])].iloc[-1]
    [line] = everywhere.play(task, [int(mine.seed)])
    assert [str(value) for value in line] == mine.tolist()


def test_trained_markets_train_on_the_embedded_data_sets() -> None:
    markets = {market for market, *_ in everywhere.tasks() if market.startswith("trained")}
    assert len(markets) == 10
    assert {everywhere.scenario_of(market).training.backend for market in markets} == {"real"}


def test_what_the_page_says_in_short_is_what_its_tables_say() -> None:
    """Every interval in the page's prose stands in a table, without plus signs and the zeros in front of points."""
    page = (ROOT / "research/notebook/everywhere.md").read_text()
    lines = page.splitlines()
    tables = plain(" ".join(line for line in lines if line.startswith("|")))
    prose = plain(" ".join(line.strip() for line in lines if not line.startswith("|")))
    said = re.findall(r"-?\.\d+ \[[^]]+\]", prose)
    assert len(said) > 15
    assert [it for it in said if it not in tables and it.replace(".0000", "-.0000") not in tables] == []


def plain(text: str) -> str:
    return text.replace("+", "").replace("0.", ".")
