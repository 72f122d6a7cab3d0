"""The picture of a league: who gains among whom as a heat map, with the ratings to its right."""

import textwrap
from functools import partial
from typing import Any

import numpy as np

from flmarket.analysis.figures.drawing import Figure
from flmarket.analysis.figures.styles import colour
from flmarket.benchmark.league.report import gains_table, sentences, title
from flmarket.benchmark.league.standing import Standing

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
