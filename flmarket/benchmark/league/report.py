"""A league for people: its tables, also as CSV files, and its picture, a heat map with the ratings to its right."""

import math
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from flmarket.analysis.figures.drawing import Figure, colour
from flmarket.benchmark.league.league import Standing
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
    columns = {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {key: round(value, 9) for key, value in columns.items()}


_CELL, _ROW, _RATINGS, _BAR = 0.54, 0.3, 1.8, 0.12
"""In inches: the width of a cell, its height, and the widths of the ratings and of the colour bar."""

_LETTER = 0.075  # the width of a letter of a policy's name, in inches

_SMALL = 7.5  # the size of numbers in cells and of the text below, in points


def picture(standing: Standing) -> Figure:
    """Return the picture: the cells of ``gains_table``; on the diagonal, what a policy gets where all play it."""
    caption = f"{title(standing)}: gains of visitors, and ratings"
    return Figure(f"{standing.league.scenario.name}-cross-play", caption, partial(_draw, standing, caption))


def _draw(standing: Standing, caption: str) -> Any:
    from matplotlib.figure import Figure as Canvas

    table = gains_table(standing)
    _, *names = table.header
    space = _LETTER * max(map(len, names))
    width = max(space + _CELL * len(names) + _RATINGS + 1.7, 6)
    text = "\n".join(line for it in _legend(standing) for line in textwrap.wrap(it, int(19 * width)))
    height = _ROW * len(names) + 0.75 * space + 1.3 + 0.14 * text.count("\n")
    figure = Canvas(figsize=(width, height), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=[_CELL * len(names), _RATINGS, _BAR])
    board = figure.add_subplot(grid[0])
    mesh = _gains(board, standing, [cells for _, *cells in table.rows])
    middles = np.arange(len(names)) + 0.5
    board.set_xticks(middles, names, rotation=45, ha="left", rotation_mode="anchor")
    board.set_yticks(middles, names)
    _ratings(figure.add_subplot(grid[1], sharey=board), standing, middles)
    board.invert_yaxis()
    bar = figure.colorbar(mesh, cax=figure.add_subplot(grid[2]), label="gain, AUC")
    bar.ax.grid(visible=False)
    bar.outline.set_visible(False)
    figure.suptitle(caption, fontsize="medium")
    figure.supxlabel(text, x=0.01, ha="left", fontsize=_SMALL)
    return figure


def _legend(standing: Standing) -> list[str]:
    bars = "; bars: 95 % intervals of the ratings" if any(it.rating.known for it in standing.ratings) else ""
    return [
        "A cell: what one service, the visitor, gains by playing the row's policy where all others play the column's.",
        "Grey: AUC where all play the policy.",
        f"Filled marks: policies with a part in the equilibrium{bars}.",
        *sentences(standing),
    ]


def _gains(axes: Any, standing: Standing, texts: list[list[str]]) -> Any:
    """Draw the heat map with a text in each cell off the diagonal; return what its colour bar is made of."""
    import matplotlib as mpl

    order = [it.policy for it in standing.ratings]
    gains = np.array([[standing.cells[a, b].gain.estimate for b in order] for a in order])
    top = float(np.abs(gains).max()) or 0.001  # policies that are the same in all but name gain nothing
    # ColorBrewer's, which colour-blind readers can tell apart: losses are red, and gains blue
    colours = mpl.colormaps["RdBu"].with_extremes(bad="0.88")
    shown = np.ma.masked_array(gains, np.eye(len(order), dtype=bool))
    mesh = axes.pcolormesh(shown, cmap=colours, vmin=-top, vmax=top, edgecolors="white", linewidth=1)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="residents", ylabel="visitor")
    for (i, j), gain in np.ndenumerate(gains):
        same = i == j
        text = f"{standing.cells[order[i], order[i]].payoff.estimate:.4f}" if same else texts[i][j]
        ink = "black" if same else _ink(mesh.to_rgba(gain))
        weight = "bold" if text.endswith("!") else "normal"
        axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=_SMALL, fontweight=weight, color=ink)
    return mesh


def _ink(colour: tuple[float, ...]) -> str:
    """Return black or white, whichever has more contrast with a colour, after the WCAG 2's relative luminance."""
    red, green, blue = (it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in colour[:3])
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"


def _ratings(axes: Any, standing: Standing, middles: Any) -> None:
    for y, it in zip(middles, standing.ratings, strict=True):
        interval = it.rating
        ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]] if interval.known else None
        marker = {"marker": "o", "markersize": 5, "markerfacecolor": colour(0) if it.share > 0 else "white"}
        axes.errorbar(interval.estimate, y, xerr=ends, capsize=3, color=colour(0), **marker)
    axes.axvline(0, color="0.4", linewidth=0.8, linestyle=(0, (1, 3)))
    axes.tick_params(axis="y", labelleft=False, length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("rating")
    axes.locator_params(axis="x", nbins=3)
