"""notebook/league.md shows what the kept results of its leagues say."""

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results"
LEAGUES = ["league-paper", "league-paper-mahdrl", "league-scarce", "league-scarce-mahdrl"]
PAGE = (ROOT / "research/notebook/league.md").read_text()
ROWS = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]


def text(value: float, digits: int = 4, sign: str = "") -> str:
    """Return a number below 1 as the page has it: without the zero in front of its point."""
    return f"{value:{sign}.{digits}f}".replace("0.", ".", 1)


def with_interval(estimate: float, low: float, high: float) -> str:
    return f"{text(estimate, sign='+')} [{text(low)}, {text(high)}]"


def cross_play(league: str) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    """Return the gains of visitors, and what a policy gets where all play it."""
    cells = pd.read_csv(RESULTS / f"{league}.csv")
    alone = cells.visitor == cells.resident
    return cells[~alone], cells[alone].set_index("visitor").payoff


@pytest.mark.parametrize("league", LEAGUES)
def test_the_ratings_are_those_of_the_kept_league(league: str) -> None:
    _, own = cross_play(league)
    for it in pd.read_csv(RESULTS / f"{league}-ratings.csv").itertuples():
        rating, *ends = ("0" if value == 0 else text(value) for value in (it.rating, it.rating_low, it.rating_high))
        cells = [f"`{it.policy}`", rating, f"[{', '.join(ends)}]", f"{it.share:g}", f"{100 * it.stays:.0f} %"]
        assert [*cells, text(own[it.policy])] in [row[:6] for row in ROWS]


@pytest.mark.parametrize("league", LEAGUES)
def test_best_responses_are_those_of_the_kept_searches(league: str) -> None:
    gains, own = cross_play(league)
    for it in pd.read_csv(RESULTS / f"{league}-exploitability.csv").itertuples():
        assert own[it.policy] == it.own
        best = gains[gains.resident == it.policy].gain.max()
        assert it.visitor_gain == best
        trained = with_interval(it.gain, it.gain_low, it.gain_high)
        visitor = with_interval(it.visitor_gain, it.visitor_gain_low, it.visitor_gain_high)
        oracle = with_interval(it.oracle_gain, it.oracle_gain_low, it.oracle_gain_high)
        row = [f"`{it.policy}`", text(it.own), trained, f"`{it.visitor}`: {visitor}", oracle]
        if league != "league-scarce-mahdrl":
            assert row in ROWS
        else:  # one row, in words
            prose = " ".join(PAGE.split())
            assert f"({trained})" in prose
            assert f"the privileged oracle gains {oracle.lstrip('+')}" in prose


def test_the_best_visitors_in_scarce_are_those_of_the_kept_league() -> None:
    gains, _ = cross_play("league-scarce-mahdrl")
    for resident, found in gains.groupby("resident"):
        best = found.loc[found.gain.idxmax()]
        cell = f"`{best.visitor}` {with_interval(best.gain, best.gain_low, best.gain_high)}"
        assert (f"`{resident}`", cell) in [(row[0], row[-1]) for row in ROWS]


def test_in_paper_there_is_hardly_a_game() -> None:
    gains, own = cross_play("league-paper")
    spread = text(own.max() - own.min(), 3)
    by_visitor = gains.groupby("visitor").payoff
    depends = by_visitor.max() - by_visitor.min()
    sure = gains[gains.gain_p_holm <= 0.05]
    prose = " ".join(PAGE.split())
    assert (
        f"depends on the residents by {text(depends.max())} at most (`{depends.idxmax()}`; for `dearest` by "
        f"{text(depends['dearest'])}), while the best and the worst differ by {spread}." in prose
    )
    assert f"({(sure.gain > 0).sum()} of the {len(gains) // 2} pairs at 5 %, adjusted for {len(gains)} comp" in prose
    summary = " ".join((ROOT / "docs/league.md").read_text().split())
    assert f"by {text(depends.max())} AUC at most, while the best and the worst policy differ by {spread}." in summary
