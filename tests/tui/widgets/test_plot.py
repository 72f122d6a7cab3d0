"""The plot: axes on whole cells, targets behind the curves, signs and names where they end, and a part of rounds."""

import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.style import Style
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from learning.training.records import Row, log_of
from support.screens import Play, painted, text_of, until, watching
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.training import TrainingScreen
from tui.style.colors import ANSI_SERIES, series_color
from tui.widgets.plot import ACROSS, DASH, PLAYHEAD, UP, Axis, Plot, axis, rounded
from tui.widgets.zoom import CLOSEST, ZoomPlot, room

BRAILLE = range(0x2801, 0x2900)
NUMBERS = st.one_of(
    st.integers(-1000, 1000).map(float),
    st.decimals(-10_000, 10_000, places=4).map(float),
    st.floats(-1e9, 1e9).map(lambda number: float(f"{number:.6g}") if abs(number) > 1e-6 else 0.0),
)


def lines(plot: Plot) -> list[str]:
    """What a plot shows, line by line."""
    return [plot.render_line(y).text for y in range(plot.size.height)]


def inside(app: MarketApp) -> list[str]:
    """What the plot shows to the right of its numbers, line by line, with the labels of targets."""
    *body, _ = lines(app.screen.query_one(Plot))
    return [line[min(line.find(edge) for edge in "│┤└" if edge in line) + 1 :] for line in body]


def signs(app: MarketApp) -> set[str]:
    return {sign for line in inside(app) for sign in line[:-5] if sign.isdecimal()}  # the rest are labels


def styles(plot: Plot, row: int) -> list[tuple[str, Style]]:
    """The cells of a line."""
    return [(character, part.style or Style()) for part in plot.render_line(row) for character in part.text]


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause(0.2)  # longer than a redraw is put off


class PlotApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Plot()


# Axes


def shown(found: Axis, cells: int) -> tuple[float, float]:
    """The numbers in the middle of the first cell and of the last."""
    return found.low, found.low + (cells - 1) * found.worth


@given(low=NUMBERS, more=NUMBERS.map(abs), cells=st.integers(2, 300), apart=st.sampled_from([ACROSS, UP]))
@example(low=0.0, more=100.0, cells=17, apart=UP)
def test_ticks_stand_on_whole_cells_and_say_round_numbers(low: float, more: float, cells: int, apart: range) -> None:
    found = axis(low, low + more, cells, apart)
    places, numbers = [place for place, _ in found.ticks], [Decimal(label) for _, label in found.ticks]
    assert len({b - a for a, b in pairwise(places)}) <= 1
    assert all(b - a in apart for a, b in pairwise(places))
    assert all(0 <= place < cells for place in places)
    for place, number in zip(places, numbers, strict=True):
        assert found.low + place * found.worth == pytest.approx(float(number), abs=1e-6 * found.worth)
    for a, b in pairwise(numbers):
        assert (b - a).normalize().as_tuple().digits in {(1,), (2,), (5,), (2, 5)}
        assert a % (b - a) == 0


@given(low=NUMBERS, more=NUMBERS.map(abs), cells=st.integers(2, 300), apart=st.sampled_from([ACROSS, UP]))
def test_an_axis_contains_its_numbers_and_wastes_no_room(low: float, more: float, cells: int, apart: range) -> None:
    found = axis(low, low + more, cells, apart)
    first, last = shown(found, cells)
    assert first <= low + 1e-6 * found.worth
    assert last >= low + more - 1e-6 * found.worth
    least, most, step = rounded(low, low + more)
    if cells >= 10 and apart is UP:
        assert max(most - least, step) / (last - first) > 0.6
        assert len(found.ticks) >= 2


@given(
    numbers=st.lists(NUMBERS, min_size=2, max_size=30), cells=st.integers(2, 300), apart=st.sampled_from([ACROSS, UP])
)
@example(numbers=[1.0, -1e-05, 50001.0], cells=2, apart=UP)
@example(numbers=[5.5, 20.0, 45.0], cells=2, apart=UP)
def test_a_picture_steps_between_round_numbers_as_curves_grow(numbers: list[float], cells: int, apart: range) -> None:
    steps = []
    for count in range(1, len(numbers) + 1):
        part = numbers[:count]
        low, high, step = limits = rounded(min(part), max(part))
        steps.append(((min(part), max(part)), limits, axis(min(part), max(part), cells, apart)))
        for limit in (low, high):
            assert limit / step == pytest.approx(round(limit / step), abs=1e-6)
    for (_, before, picture), ((least, most), after, next_picture) in pairwise(steps):
        slack = 1e-6 * after[2]  # limits may leave out so much of a number, and a larger step the limit it needed
        assert after[0] <= before[0] + slack or 0 < after[0] - least < slack
        assert after[1] >= before[1] - slack or 0 < most - after[1] < slack
        assert picture == next_picture or after != before


def test_axes_of_low_plots_have_two_ticks_and_rounds_are_whole_numbers() -> None:
    for cells in range(5, 10):
        assert len(axis(19.5, 96.7, cells, UP).ticks) >= 2
        assert len(axis(-0.12, 0.0, cells, UP).ticks) >= 2
    for cells in range(2, 300):
        assert all("." not in label for _, label in axis(0, 10, cells, ACROSS, finest=1).ticks)


@pytest.mark.parametrize("last", [12, 31, 101, 130, 510, 1010])
def test_rounds_use_the_width_and_an_axis_that_grows_has_a_little_room(last: int) -> None:
    for cells in (60, 100, 150):
        assert axis(0, last, cells, ACROSS, finest=1).cell(last, cells) >= 0.85 * cells
    assert last <= room(last) <= 1.25 * last


async def test_a_thin_frame_stands_on_two_sides_at_every_size() -> None:
    async with PlotApp().run_test() as pilot:
        plot = pilot.app.query_one(Plot)
        for width, height in ((80, 24), (40, 9), (12, 5), (200, 60)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            plot.begin(20, 0, 100)
            *body, frame, numbers = lines(plot)
            left = frame.index("└")
            assert {line[left] for line in body} <= {"│", "┤"}
            assert set(frame[left + 1 :]) <= {"─", "┬"}
            assert all(line[left + 1 :].isspace() for line in body)
            assert all(len(line) == width for line in (*body, frame, numbers))
            ticks = [y for y, line in enumerate(body) if line[left] == "┤"]
            assert [y for y, line in enumerate(body) if line[:left].strip()] == ticks
            assert len({b - a for a, b in pairwise([*ticks, height - 2])}) == 1  # 0 stands at the corner
        # A plot without room draws what fits.
        for size in ((1, 1), (2, 2), (3, 9), (30, 2), (5, 3)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            plot.begin(20, 0, 100)
            plot.level(93, "1 93", "blue")
            plot.curve([1, 2, 3], [10, float("nan"), 99], "red", "1")
            assert [len(line) for line in lines(plot)] == [size[0]] * size[1]


# Curves


async def test_dots_of_several_curves_in_a_cell_are_all_shown_and_take_turns_or_have_the_chosen_ones_colour() -> None:
    async with PlotApp().run_test(size=(60, 20)) as pilot:
        plot = pilot.app.query_one(Plot)
        alone = []
        for height in (50.0, 52.0):  # within one cell
            plot.begin(20, 0, 100)
            plot.curve([5, 20], [height, height], "red")
            alone.append({(y, x): ord(c) - 0x2800 for y, line in enumerate(lines(plot)) for x, c in enumerate(line)
                          if ord(c) in BRAILLE})  # fmt: skip
        assert alone[0].keys() == alone[1].keys()
        assert alone[0] != alone[1]
        for first in (True, False):
            plot.begin(20, 0, 100)
            plot.curve([5, 20], [50.0, 50.0], "red", "1", chosen=first)
            plot.curve([5, 20], [52.0, 52.0], "blue", "2", chosen=not first)
            for (y, x), dots in alone[0].items():
                character, style = styles(plot, y)[x]
                if character not in {"1", "2"}:
                    assert ord(character) - 0x2800 == dots | alone[1][y, x]
                    assert style.color.name == ("red" if first else "blue")
        # Curves in the same cells take turns where none is chosen.
        plot.begin(20, 0, 100)
        plot.curve([5, 20], [50, 50], "green")  # the end of an interval is behind both
        for color, sign in (("red", "1"), ("blue", "2")):
            plot.curve([5, 20], [50, 50], color, sign)
        seen = [style.color for y in range(20) for character, style in styles(plot, y) if ord(character) in BRAILLE]
        assert {color.name for color in seen if color} == {"red", "blue"}


@pytest.mark.slow
async def test_curves_end_in_their_signs_before_an_upright_playhead(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await settled(pilot)
        assert screen.head.round == 12
        assert signs(app) == {"1", "2", "3"}
        await pilot.press("home")  # a curve of one round is its sign
        await settled(pilot)
        assert signs(app) == {"1", "2", "3"}
        # The playhead is an upright line behind the curves.
        await pilot.press("home", "]", "]", "]", "]")
        await settled(pilot)
        shown = [line[:-5] for line in inside(app)]
        ends = {line.rindex(PLAYHEAD) for line in shown if PLAYHEAD in line}
        assert len(ends) == 1
        assert all(line.find(sign) in {-1, *ends} for line in shown for sign in ("1 a", "2 b", "3 g"))
        # In themes of the terminal, curves and targets have its colours.
        for theme in ("ansi-dark", "ansi-light"):
            app.theme = theme
            await settled(pilot)
            plot = screen.query_one(Plot)
            cells = [cell for y in range(plot.size.height) for cell in styles(plot, y)]
            used = {style.color.name for character, style in cells if ord(character) in BRAILLE and style.color}
            assert used
            assert used <= set(ANSI_SERIES)


async def test_signs_of_curves_that_end_in_one_place_stand_beside_each_other(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CompareScreen([session] * 9, app))
        await settled(pilot)
        assert signs(app) == set("123456789")


async def test_names_of_curves_that_end_together_stand_in_the_order_of_their_last_values() -> None:
    async with PlotApp().run_test(size=(60, 20)) as pilot:
        plot = pilot.app.query_one(Plot)
        for ends in ([50, 51, 52, 50.5, 49], [99, 100, 98, 97, 100], [0, 1, 2, 0, 3]):
            plot.begin(20, 0, 100)
            for n, end in enumerate(ends, start=1):
                plot.curve([1, 20], [10 * n, end], "red", str(n), f"name-{n}")
            shown = [match[1] for line in lines(plot) if (match := re.search(r"(\d) name-\1", line))]
            assert shown == [str(1 + n) for n in sorted(range(5), key=lambda n: (-ends[n], n))]
        # Where there are too few rows, no sign stands at a name.
        await pilot.resize_terminal(60, 6)
        await pilot.pause()
        plot.begin(20, 0, 100)
        for n in range(1, 8):
            plot.curve([1, 20], [10 * n, 50], "red", str(n), f"name-{n}")
        text = "\n".join(lines(plot))
        assert len(re.findall(r"\d name-\d", text)) == 4
        assert not re.search(r"\d\d? ?\d name", text)
        assert not re.search(r"[1-7][1-7]", text.rpartition("\n")[0])  # two signs are no number
        assert set(re.findall(r"(?<!-)[1-7]", text.rpartition("\n")[0])) >= set("1234567")


# Targets


@pytest.mark.slow
async def test_targets_are_lines_at_every_size_and_in_every_round(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, _):
        await pilot.press("2")
        for size in ((80, 24), (120, 36), (200, 60), (130, 40)):
            await pilot.resize_terminal(*size)
            for key in ("home", "right", "}", "end"):
                await pilot.press(key)
                await settled(pilot)
                targets = [line for line in inside(app) if DASH in line]
                assert len(targets) in {2, 3}, (size, key)  # two of them are near each other
                assert all(" " not in re.sub(r"\d [a-z]+", "", line[:-5]) for line in targets), (
                    size,
                    key,
                )  # the rest is the label
                assert [line[-5:].strip() for line in inside(app) if line[-5:].strip()] == ["3 95", "2 90", "1 50"]


async def test_targets_in_one_line_take_turns_and_labels_and_names_have_places_of_their_own() -> None:
    async with PlotApp().run_test(size=(60, 12)) as pilot:
        plot = pilot.app.query_one(Plot)
        plot.begin(20, 0, 100)
        for label, color in (("1 90", "red"), ("2 90", "blue"), ("3 90", "green")):
            plot.level(90, label, color)
        dashes = [{style.color.name for character, style in styles(plot, y) if character == DASH and style.color}
                  for y in range(12)]  # fmt: skip
        assert [colors for colors in dashes if colors] == [{"red", "blue", "green"}]
        found = {}
        for y, line in enumerate(lines(plot)):
            if line[-4:].strip():
                color = styles(plot, y)[-1][1].color
                found[line[-4:]] = color.name if color else ""
        assert found == {"1 90": "red", "2 90": "blue", "3 90": "green"}
        # The name of a curve follows its sign and covers no dots.
        plot.begin(20)
        plot.curve([1, 10], [0, 50], "red", "1", "alpha")
        plot.curve([1, 10], [100, 50], "blue", "2", "beta", chosen=True)
        plot.curve([9, 20], [51, 51], "green")  # in the way of both
        shown = lines(plot)
        [alpha], [beta] = ([y for y, line in enumerate(shown) if words in line] for words in ("1 alpha", "2 beta"))
        [row] = [y for y, line in enumerate(shown) if ord(line[50]) in BRAILLE]
        assert {alpha, beta} == {row - 1, row + 1}
        plot.begin(20)
        plot.curve([1, 20], [0, 50], "red", "1", "a-name-that-is-longer-than-there-is-room")
        assert "1 a-name-that-is…" in lines(plot)[0]
        # Labels that would stand outside move inside.
        await pilot.resize_terminal(60, 6)
        await pilot.pause()
        plot.begin(20, 0, 100)
        for m, target in enumerate((100, 100, 100, 99), start=1):
            plot.level(target, f"{m} {target}", "red")
        assert [line[-5:].strip() for line in lines(plot)[:4]] == ["3 100", "2 100", "1 100", "4 99"]


class ZoomApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ZoomPlot()


def numbers(plot: ZoomPlot) -> list[str]:
    """The line below the plot."""
    return plot.render_line(plot.size.height - 1).text.split()


async def test_the_part_moves_within_what_there_is_and_a_few_rounds_are_as_near_as_it_gets() -> None:
    async with ZoomApp().run_test() as pilot:
        plot = pilot.app.query_one(ZoomPlot)
        for at, shown in ((0, (0, 40)), (40, (20, 60)), (80, (40, 80)), (None, (40, 80))):  # a place stays where it is
            assert plot.show(80) == (0, 80)
            plot.zoom(0.5, at)
            assert plot.window == plot.show(80) == shown
            assert (numbers(plot)[0], numbers(plot)[-2:]) == (str(shown[0]), ["Z:", "all"])
            plot.zoom(2, at)
            assert plot.window is None
        plot.zoom(0.25, 80)
        for windows, shown in ((-0.5, (50, 70)), (-0.5, (40, 60)), (2, (60, 80)), (-9, (0, 20)), (0.5, (10, 30))):
            plot.move(windows)
            assert plot.show(80) == shown
        assert plot.show(80, at=25) == (10, 30)
        assert plot.show(80, at=50) == (40, 60)
        assert plot.show(90, at=55) == (40, 60)  # there may be more rounds by now
        plot.zoom(100)
        plot.show(1000)
        for _ in range(12):
            plot.zoom(0.5, 500)
            first, last = plot.show(1000)
            assert first <= 500 <= last
        assert CLOSEST <= last - first <= 2 * CLOSEST


async def test_the_curves_of_a_market_are_drawn_again_from_the_rounds_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, screen):
        plot = screen.query_one(ZoomPlot)
        await pilot.press("2", "m", "home", "z")
        assert plot.window == (0, 5)
        assert {xs[-1] for xs, *_ in plot.curves} == {1}
        await pilot.press("end", "v")  # whatever is drawn
        first, last = plot.window
        assert last == 12
        assert any(line.rstrip().endswith(PLAYHEAD) for line in text_of(plot).splitlines())  # in the last round
        assert {(xs[0], xs[-1]) for xs, *_ in plot.curves} == {(first, 12)}
        await pilot.press("Z")
        assert plot.window is None
        assert {xs[0] for xs, *_ in plot.curves} == {1}


@pytest.mark.parametrize("count", [10, 50])
async def test_of_many_services_the_chosen_and_the_five_most_accurate_have_colours(
    app: MarketApp, play_small: Play, scenario_text: str, count: int
) -> None:
    head, first, *_ = scenario_text.split("[[services]]")
    services = "".join("[[services]]" + first.replace('"alpha"', f'"service-{m}"') for m in range(count))
    session = play_small(head.replace("count = 8", "count = 40").replace("rounds = 12", "rounds = 2") + services)
    async with watching(app, session, (120, 40)) as (pilot, screen):
        accuracies = session.history.column("accuracy", 2)[-1]
        best = sorted(range(count), key=lambda m: -accuracies[m])
        await pilot.press("1", *["down"] * 8)
        await settled(pilot)
        plot = screen.query_one(ZoomPlot)
        colored = {curve.name: curve.style for curve in plot.curves if curve.sign}
        shown = range(10) if count == 10 else {*best[:5], 8}
        assert colored == {f"service-{m}": series_color(m, app) for m in shown}
        assert len(plot.curves) == count
        assert ("in colour: the chosen and the five most accurate" in painted(app)) == (count == 50)


async def test_both_plots_of_a_comparison_show_the_same_rounds(app: MarketApp, play_small: Play) -> None:
    async with app.run_test(size=(120, 50)) as pilot:
        app.push_screen(CompareScreen([play_small(), play_small(seed=2)], app))
        await pilot.pause()
        values, differences = app.screen.query(ZoomPlot)
        await pilot.press("z", "less_than_sign")
        assert values.window == differences.window == (3, 9)
        assert {(xs[0], xs[-1]) for xs, *_ in differences.curves} == {(3, 9)}
        assert all(3 <= xs[0] < xs[-1] == 9 for xs, *_ in values.curves)  # its axis fits the later rounds
        await pilot.press("Z")
        assert values.window is differences.window is None
        await pilot._post_mouse_events([MouseScrollUp], differences, (20, 2))
        first, last = values.window or (0, 0)
        assert differences.window == (first, last)
        assert 0 < last - first < 12
        await pilot._post_mouse_events([MouseScrollDown], values)
        assert values.window is differences.window is None


async def test_a_training_is_zoomed_too(tmp_path: Path) -> None:
    log = tmp_path / "mine.csv"
    with log_of(log, 0) as writer:
        writer.write(Row(n, "train", 0.1, 0.25, 0.5, 0.0, 0.125, {"critic_loss": 0.5}).values() for n in range(1, 41))
    app = MarketApp(trainings=[log], out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TrainingScreen) and app.screen.feeds[0].episodes, "episodes")
        await pilot.press("z", "z")
        [episodes] = app.screen.query_one(ZoomPlot).curves
        assert (episodes.xs[0], episodes.xs[-1]) == (30, 40)
