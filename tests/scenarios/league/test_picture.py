"""The picture of a league: what its cells say, and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning.intervals import Interval
from scenarios.judging.drawing import FORMATS, images, save
from scenarios.league.crossplay import Cell
from scenarios.league.league import League
from scenarios.league.picture import picture
from scenarios.league.ratings import Rating
from scenarios.league.report import Standing, gains_table

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
"""By visitor and resident."""

MANY = (
    "dearest", "pacing", "mahdrl-single", "hqfa", "oort", "outbid", "random", "contribution", "fmore", "ucb", "greedy",
    "lcfa", "stackelberg", "worth",
)  # fmt: skip
"""The longest league of docs/league.md. What is not said of a gain above is that it is -.1, and certain."""

SURE = {("oracle", "hqfa"), ("hqfa", "oracle")}
OWN = {"oracle": 0.9, "lcfa": 0.8123, "hqfa": 0.7}


def interval(estimate: float, p: float = float("nan")) -> Interval:
    return Interval(estimate, estimate - 0.01, estimate + 0.02, 0.95, p)


@pytest.fixture
def make_standing(small_league: Callable[..., League]) -> MakeStanding:
    """``make_standing(("lcfa", "hqfa"))``: some of those above."""

    def make(order: Sequence[str] = ORDER) -> Standing:
        league = small_league(*sorted(order))
        cells = [
            Cell(a, b, interval(OWN.get(b, 0.8)), interval(0.0))
            if a == b
            else Cell(
                a, b, interval(0.5), interval(GAINS.get((a, b), -0.1), 0.3 if (a, b) in GAINS.keys() - SURE else 1e-6)
            )
            for b, a in product(sorted(order), repeat=2)
        ]
        ratings = [Rating(it, float(i == 0), interval(-0.1 * i), 0.5) for i, it in enumerate(order)]
        return Standing(league, cells, ratings, None)

    return make


def parts(standing: Standing) -> tuple[Any, Any, Any]:
    """Return the drawn figure, its heat map, and its ratings."""
    figure = picture(standing).draw()
    board, ratings, _ = figure.axes
    return figure, board, ratings


def texts(board: Any) -> dict[tuple[int, int], Any]:
    """Return the texts of cells, by row and column."""
    return {(int(it.get_position()[1]), int(it.get_position()[0])): it for it in board.texts}


def labels(axis: Any) -> list[str]:
    return [it.get_text() for it in axis.get_ticklabels()]


def test_rows_are_visitors_and_columns_residents_in_the_order_of_the_ratings(make_standing: MakeStanding) -> None:
    _, board, _ = parts(make_standing())
    assert labels(board.yaxis) == labels(board.xaxis) == ["oracle*", "lcfa", "hqfa"]  # * is privileged
    assert (board.get_ylabel(), board.get_xlabel()) == ("visitor", "residents")
    assert board.yaxis_inverted()  # the best is in the first row
    assert not board.xaxis_inverted()
    (mesh,) = board.collections
    found = mesh.get_array().reshape(3, 3)
    for (i, a), (j, b) in product(enumerate(ORDER), repeat=2):
        if a != b:
            assert found[i, j] == GAINS[a, b]


def test_cells_say_what_the_table_says(make_standing: MakeStanding) -> None:
    standing = make_standing()
    _, board, _ = parts(standing)
    found = texts(board)
    assert len(found) == 9
    assert [found[0, 2].get_text(), found[2, 0].get_text(), found[1, 2].get_text()] == ["+0.100!", "-0.110!", "+0.030"]
    _, rows = gains_table(standing)
    for (i, j), it in found.items():
        assert it.get_text() == (rows[i][1 + j] if i != j else f"{OWN[ORDER[i]]:.4f}")
        assert it.get_fontweight() == ("bold" if (i, j) in {(0, 2), (2, 0)} else "normal")


def test_colours_are_centred_at_no_gain_and_the_diagonal_has_none_of_them(make_standing: MakeStanding) -> None:
    _, board, _ = parts(make_standing())
    (mesh,) = board.collections
    assert mesh.get_clim() == (-0.11, 0.11)
    assert np.ma.getmaskarray(mesh.get_array()).reshape(3, 3).tolist() == np.eye(3, dtype=bool).tolist()
    (red, _, blue, _), (less_red, _, more_blue, _) = mesh.cmap([0.0, 1.0])
    assert red > blue
    assert more_blue > less_red


@pytest.mark.parametrize("sign", [-1, 1])
def test_numbers_can_be_read_on_every_colour(sign: int, make_standing: MakeStanding) -> None:
    """At least 4.5 to 1, as the Web Content Accessibility Guidelines ask of text."""
    from matplotlib.colors import to_rgb

    def luminance(colour: Any) -> float:
        linear = [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in to_rgb(colour)]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    standing, gains = make_standing(), iter([0.1, 0.085, 0.0705, 0.0695, 0.055, 0.02])
    cells = [
        it if it.visitor == it.resident else replace(it, gain=interval(sign * next(gains), 0.3))
        for it in standing.cells
    ]
    _, board, _ = parts(replace(standing, cells=cells))
    (mesh,) = board.collections
    drawn = mesh.cmap(mesh.norm(mesh.get_array())).reshape(3, 3, 4)
    for place, it in texts(board).items():
        dark, light = sorted([luminance(it.get_color()), luminance(drawn[place][:3])])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_ratings_stand_in_the_rows_of_their_policies(make_standing: MakeStanding) -> None:
    _, board, ratings = parts(make_standing())
    marks = [line for container in ratings.containers for line in container.lines[:1]]
    assert [it.get_xdata()[0] for it in marks] == [0, -0.1, -0.2]
    assert [it.get_ydata()[0] for it in marks] == board.get_yticks().tolist()
    assert [it.get_markerfacecolor() == it.get_color() for it in marks] == [True, False, False]
    ends = [container.lines[2][0].get_segments()[0][:, 0].tolist() for container in ratings.containers]
    assert ends == [pytest.approx([it - 0.01, it + 0.02]) for it in (0, -0.1, -0.2)]


def test_what_is_played_and_what_marks_mean_is_in_the_picture(make_standing: MakeStanding) -> None:
    standing = make_standing()
    figure, _, _ = parts(standing)
    assert figure.get_suptitle() == "paper (surrogate): 3 policies, 3 seats, 3 seeds: gains of visitors, and ratings"
    legend = figure.get_supxlabel().replace("\n", " ")
    assert "! p <= 0.05 of a gain or loss, adjusted for 6 comparisons (Holm)" in legend
    assert "* sees what the paper hides from services" in legend
    assert "bars: 95 % intervals" in legend


def test_too_few_seeds_for_intervals(make_standing: MakeStanding) -> None:
    """There are no bars and no marks of what is certain, and no word of them."""
    standing, nan = make_standing(), float("nan")

    def bare(it: Interval) -> Interval:
        return replace(it, low=nan, high=nan, p=nan)

    cells = [replace(it, payoff=bare(it.payoff), gain=bare(it.gain)) for it in standing.cells]
    ratings = [replace(it, rating=bare(it.rating)) for it in standing.ratings]
    figure, board, axes = parts(replace(standing, cells=cells, ratings=ratings))
    assert not any(it.get_text().endswith("!") for it in board.texts)
    assert not any(container.has_xerr for container in axes.containers)
    assert "95 %" not in figure.get_supxlabel()


def test_policies_that_are_the_same_in_all_but_name(make_standing: MakeStanding) -> None:
    standing = make_standing(("lcfa", "hqfa"))
    cells = [replace(it, gain=interval(0.0, 1.0)) for it in standing.cells]
    _, board, _ = parts(replace(standing, cells=cells))
    (mesh,) = board.collections
    low, high = mesh.get_clim()
    assert low == -high < 0
    assert texts(board)[0, 1].get_text() == "+0.000"


@pytest.mark.parametrize("order", [("lcfa", "hqfa"), ORDER, MANY], ids=len)
def test_all_of_it_is_inside_the_picture(order: Sequence[str], make_standing: MakeStanding) -> None:
    figure, board, _ = parts(make_standing(order))
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


def test_the_same_standing_gives_the_same_bytes_in_every_format(make_standing: MakeStanding, tmp_path: Path) -> None:
    paths = save([picture(make_standing())], tmp_path)
    assert [path.name for path in paths] == [f"paper-cross-play.{suffix}" for suffix in ("svg", "png", "pdf")]
    assert [path.read_bytes() for path in paths] == images(picture(make_standing()), FORMATS)
