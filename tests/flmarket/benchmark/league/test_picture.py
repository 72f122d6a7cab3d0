"""The picture of a league: what its cells say, and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from flmarket.benchmark.league.league import Cell, League, Standing
from flmarket.benchmark.league.ratings import Rating
from flmarket.benchmark.league.report import gains_table, picture
from learning.statistics.intervals import Interval

MakeStanding = Callable[..., Standing]

ORDER = ("oracle", "lcfa", "hqfa")
"""The policies by their ratings; they entered the league in another order."""

GAINS = {
    ("hqfa", "lcfa"): -0.02,
    ("hqfa", "oracle"): -0.11,
    ("lcfa", "hqfa"): 0.03,
    ("lcfa", "oracle"): -0.09,
    ("oracle", "hqfa"): 0.1,
    ("oracle", "lcfa"): 0.08,
}
"""By visitor and resident; other gains are -.1, and certain."""

SURE = {("oracle", "hqfa"), ("hqfa", "oracle")}
OWN = {"oracle": 0.9, "lcfa": 0.8123, "hqfa": 0.7}

MANY = (
    "dearest", "pacing", "mahdrl-single", "hqfa", "oort", "outbid", "random", "contribution", "fmore", "ucb", "greedy",
    "lcfa", "stackelberg", "worth",
)  # fmt: skip
"""The longest league of docs/league.md."""


def interval(estimate: float, p: float = float("nan")) -> Interval:
    return Interval(estimate, estimate - 0.01, estimate + 0.02, p)


@pytest.fixture
def make_standing(small_league: Callable[..., League]) -> MakeStanding:
    """``make_standing(("lcfa", "hqfa"))``: some of those above."""

    def make(order: Sequence[str] = ORDER) -> Standing:
        cells = {}
        for b, a in product(sorted(order), repeat=2):
            p = 0.3 if (a, b) in GAINS.keys() - SURE else 1e-6
            gain = interval(0.0) if a == b else interval(GAINS.get((a, b), -0.1), p)
            cells[a, b] = Cell(interval(OWN.get(b, 0.8) if a == b else 0.5), gain)
        ratings = [Rating(it, float(i == 0), interval(-0.1 * i), 0.5) for i, it in enumerate(order)]
        return Standing(small_league(*sorted(order)), cells, ratings, None)

    return make


def texts(board: Any) -> dict[tuple[int, int], Any]:
    """Return the texts of cells, by row and column."""
    return {(int(it.get_position()[1]), int(it.get_position()[0])): it for it in board.texts}


def labels(axis: Any) -> list[str]:
    return [it.get_text() for it in axis.get_ticklabels()]


def test_cells_say_what_the_table_says_in_the_order_of_the_ratings(make_standing: MakeStanding) -> None:
    standing = make_standing()
    board, *_ = picture(standing).draw().axes
    assert labels(board.yaxis) == labels(board.xaxis) == ["oracle*", "lcfa", "hqfa"]  # * is privileged
    assert (board.get_ylabel(), board.get_xlabel()) == ("visitor", "residents")
    assert board.yaxis_inverted()  # the best is in the first row
    assert not board.xaxis_inverted()
    (mesh,) = board.collections
    colours, found = mesh.get_array().reshape(3, 3), texts(board)
    rows = gains_table(standing).rows
    assert (rows[0][3], rows[2][1], rows[1][3]) == ("+0.100!", "-0.110!", "+0.030")
    for (i, a), (j, b) in product(enumerate(ORDER), repeat=2):
        assert found[i, j].get_text() == (f"{OWN[a]:.4f}" if a == b else rows[i][1 + j])
        assert found[i, j].get_fontweight() == ("bold" if (a, b) in SURE else "normal")
        assert colours[i, j] is np.ma.masked if a == b else colours[i, j] == GAINS[a, b]
    assert mesh.get_clim() == (-0.11, 0.11)  # white is no gain


@pytest.mark.parametrize("sign", [-1, 1])
def test_numbers_can_be_read_on_every_colour(sign: int, make_standing: MakeStanding) -> None:
    """At least 4.5 to 1, as the Web Content Accessibility Guidelines ask of text."""
    from matplotlib.colors import to_rgb

    def luminance(colour: Any) -> float:
        linear = [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in to_rgb(colour)]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    standing, gains = make_standing(), iter([0.1, 0.085, 0.0705, 0.0695, 0.055, 0.02])
    cells = {
        (a, b): it if a == b else replace(it, gain=interval(sign * next(gains), 0.3))
        for (a, b), it in standing.cells.items()
    }
    board, *_ = picture(replace(standing, cells=cells)).draw().axes
    (mesh,) = board.collections
    drawn = mesh.cmap(mesh.norm(mesh.get_array())).reshape(3, 3, 4)
    for place, it in texts(board).items():
        dark, light = sorted([luminance(it.get_color()), luminance(drawn[place][:3])])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_ratings_stand_in_the_rows_of_their_policies(make_standing: MakeStanding) -> None:
    board, ratings, _ = picture(make_standing()).draw().axes
    marks = [line for container in ratings.containers for line in container.lines[:1]]
    assert [it.get_xdata()[0] for it in marks] == [0, -0.1, -0.2]
    assert [it.get_ydata()[0] for it in marks] == board.get_yticks().tolist()
    assert [it.get_markerfacecolor() == it.get_color() for it in marks] == [True, False, False]
    ends = [container.lines[2][0].get_segments()[0][:, 0].tolist() for container in ratings.containers]
    assert ends == [pytest.approx([it - 0.01, it + 0.02]) for it in (0, -0.1, -0.2)]


@pytest.mark.parametrize("known", [True, False])
def test_the_legend_explains_marks_and_bars_where_there_are_some(known: bool, make_standing: MakeStanding) -> None:
    """With too few seeds for intervals there are no bars and no marks."""
    standing, nan = make_standing(), float("nan")
    if not known:
        bare = {pair: replace(it, gain=replace(it.gain, p=nan)) for pair, it in standing.cells.items()}
        ratings = [replace(it, rating=Interval(0, nan, nan)) for it in standing.ratings]
        standing = replace(standing, cells=bare, ratings=ratings)
    figure = picture(standing).draw()
    board, ratings_axes, _ = figure.axes
    assert any(it.get_text().endswith("!") for it in board.texts) == known
    assert all((len(it.lines[2]) > 0) == known for it in ratings_axes.containers)
    assert figure.get_suptitle() == "paper (surrogate): 3 policies, 3 seats, 3 seeds: gains of visitors, and ratings"
    legend = figure.get_supxlabel().replace("\n", " ")
    assert "! p <= 0.05 of a gain or loss, adjusted for 6 comparisons (Holm)" in legend
    assert "* sees what the paper hides from services" in legend
    assert ("bars: 95 % intervals" in legend) == known


@pytest.mark.parametrize("order", [("lcfa", "hqfa"), MANY], ids=len)
def test_all_of_it_is_inside_the_picture(order: Sequence[str], make_standing: MakeStanding) -> None:
    figure = picture(make_standing(order)).draw()
    board, *_ = figure.axes
    figure.draw_without_rendering()
    inside = figure.bbox.padded(1)
    for it in [figure._supxlabel, figure._suptitle, *board.get_xticklabels(), *board.get_yticklabels()]:
        box = it.get_window_extent()
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1
        assert inside.y0 <= box.y0
        assert box.y1 <= inside.y1
    left, right = board.transData.transform([(0, 0), (1, 0)])[:, 0]
    assert max(it.get_window_extent().width for it in board.texts) < right - left  # no number runs into the next cell
