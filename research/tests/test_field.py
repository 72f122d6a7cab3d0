"""results/field.csv is whole, and lines of it can be played again."""

from pathlib import Path

import experiment
import field
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/field.csv"


def test_every_method_has_all_seeds() -> None:
    frame = pd.read_csv(RESULTS)
    for (market, mode, method), rows in frame.groupby(["market", "mode", "method"]):
        assert rows.seed.tolist() == list(range(field.SEEDS)), (market, mode, method)
    resident = frame[frame["mode"] == "resident"]
    found = set(resident[["market", "method"]].itertuples(index=False, name=None))
    assert found == {(market, name) for market in field.MARKETS for name in field.METHODS} - field.TOO_SLOW


@pytest.mark.parametrize(
    ("market", "mode", "method"),
    [
        ("paper", "resident", "contribution"),
        ("paper", "resident", "fmore, second-score"),
        ("scarce", "resident", "hqfa under fair-queue"),
        ("scarce", "visitor", "outbid"),
        ("adaptive", "resident", "stackelberg"),
        ("rich", "resident", "dearest, k = 3"),
    ],
)
def test_a_line_of_the_file_can_be_played_again(market: str, mode: str, method: str) -> None:
    frame = pd.read_csv(RESULTS, dtype=str)
    mine = frame[(frame.market == market) & (frame["mode"] == mode) & (frame.method == method) & (frame.seed == "3")]
    [line] = field.play(market, mode, method, [3])
    assert [str(value) for value in line] == mine.iloc[0].tolist()


@pytest.mark.parametrize(
    ("market", "mode", "others"),
    [
        ("paper", "resident", "mahdrl - resolving"),
        ("scarce", "resident", "mahdrl - hqfa"),
        ("adaptive", "resident", "mahdrl - hqfa"),
        ("rich", "resident", "mahdrl - resolving"),
        ("scarce", "visitor", "mahdrl - outbid"),
        ("scarce", "resident", "outbid - pacing"),
    ],
)
def test_the_page_says_how_far_a_method_is_ahead_of_the_next(market: str, mode: str, others: str) -> None:
    frame = pd.read_csv(RESULTS)
    wide = frame[(frame.market == market) & (frame["mode"] == mode)].pivot_table("auc", "seed", "method")
    found = experiment.gain(wide, *others.split(" - "))
    words = experiment.interval_text(found), experiment.plus_minus(found)
    page = (ROOT / "research/notebook/field.md").read_text()
    assert any(text.lstrip("+").replace("+", "").replace("0.", ".") in page for text in words)
