"""Tables of a league: for people, and as CSV files."""

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from flmarket.benchmark.league.standing import Standing
from flmarket.core.files import asked_for
from flmarket.core.text import counted
from flmarket.core.text_table import TextTable
from learning.statistics.intervals import Interval

SIGNIFICANT = 0.05  # a gain is marked whose p-value is at most this, adjusted for the number of gains


def title(standing: Standing) -> str:
    """Return what was played."""
    league = standing.league
    kind = "real training" if league.trains else "surrogate"
    return (
        f"{league.scenario.name} ({kind}): {len(league.policies)} policies, "
        f"{counted(len(league.services), 'seat')}, {counted(len(league.seeds), 'seed')}"
    )


def ratings_table(standing: Standing) -> TextTable:
    """Return the ratings, with what each policy gets where all play it, and who exploits it most."""
    header = ["policy", "rating", "share", "stays", "AUC of all", "best visitor", "its gain"]
    rows = []
    for it in standing.ratings:
        gains = {a: cell.gain for (a, b), cell in standing.cells.items() if b == it.policy != a}
        best = max(gains, key=lambda visitor: gains[visitor].estimate)
        rows.append(
            [
                standing.name(it.policy),
                it.rating.text("+.4f"),
                f"{it.share:.3f}",
                "" if math.isnan(it.stays) else f"{it.stays:.0%}",
                f"{standing.cells[it.policy, it.policy].payoff.estimate:.4f}",
                standing.name(best),
                gains[best].text("+.4f"),
            ]
        )
    return TextTable("Ratings at the equilibrium of the meta-game", header, rows)


def gains_table(standing: Standing) -> TextTable:
    """Return the gains: a row for each visitor, a column for each resident, in the order of the ratings."""
    order = [it.policy for it in standing.ratings]

    def cell(visitor: str, resident: str) -> str:
        if visitor == resident:
            return "."
        mark = "!" if standing.adjusted[visitor, resident] <= SIGNIFICANT else ""
        return f"{standing.cells[visitor, resident].gain.estimate:+.3f}{mark}"

    names = [standing.name(it) for it in order]
    rows = [[name, *(cell(a, b) for b in order)] for name, a in zip(names, order, strict=True)]
    title = "Gains: what the visitor gets more than the resident in the same seats"
    return TextTable(title, ["visitor", *names], rows)


def sentences(standing: Standing) -> Iterator[str]:
    """Yield what the tables leave unsaid."""
    if any(standing.league.is_privileged(label) for label in standing.league.policies):
        yield "* sees what the paper hides from services"
    yield (
        f"! p <= {SIGNIFICANT:g} of a gain or loss, adjusted for {counted(len(standing.adjusted), 'comparison')} (Holm)"
    )
    if standing.cycle is not None:
        (a, b, c), narrowest = standing.cycle
        yield f"{a} beats {b}, {b} beats {c}, and {c} beats {a}, by {narrowest.text('+.4f')} or more"


def write(standing: Standing, folder: Path) -> list[Path]:
    """Write the cross-play and the ratings as CSV files; return them."""
    league = standing.league
    seeds = len(league.seeds)
    cross_play = [
        {
            "visitor": visitor,
            "resident": resident,
            "visitor_privileged": league.is_privileged(visitor),
            "resident_privileged": league.is_privileged(resident),
            "seeds": seeds,
            **_columns("payoff", cell.payoff),
            **_columns("gain", cell.gain),
            "gain_p": round(cell.gain.p, 9),
            "gain_p_holm": round(standing.adjusted.get((visitor, resident), float("nan")), 9),
        }
        for (visitor, resident), cell in standing.cells.items()
    ]
    ratings = [
        {
            "policy": it.policy,
            "privileged": league.is_privileged(it.policy),
            "seeds": seeds,
            **_columns("rating", it.rating),
            "share": round(it.share, 9),
            "stays": round(it.stays, 9),
        }
        for it in standing.ratings
    ]
    paths = []
    for name, rows in {"cross-play.csv": cross_play, "ratings.csv": ratings}.items():
        with asked_for(folder / name) as file:
            pd.DataFrame(rows).to_csv(file, index=False)
        paths.append(folder / name)
    return paths


def _columns(name: str, interval: Interval) -> dict[str, float]:
    found = {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {key: round(value, 9) for key, value in found.items()}
