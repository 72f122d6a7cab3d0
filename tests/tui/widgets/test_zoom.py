"""Zooming: a part of the rounds is shown, with the round that is shown in it, until all are asked for again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown, MouseScrollUp

from learning.training.records import Row, log_of
from support.screens import until, watching
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.training import TrainingScreen
from tui.state.watched_run import Session
from tui.widgets.zoom import CLOSEST, ZoomPlot

Play = Callable[..., Session]


class ZoomApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ZoomPlot()


def numbers(plot: ZoomPlot) -> list[str]:
    """The line below the plot."""
    return plot.render_line(plot.size.height - 1).text.split()


@pytest.mark.parametrize(("at", "shown"), [(0, (0, 40)), (40, (20, 60)), (80, (40, 80)), (None, (40, 80))])
async def test_a_place_stays_where_it_is(at: float | None, shown: tuple[int, int]) -> None:
    async with ZoomApp().run_test() as pilot:
        plot = pilot.app.query_one(ZoomPlot)
        assert plot.show(80) == (0, 80)
        plot.zoom(0.5, at)
        assert plot.window == plot.show(80) == shown
        assert (numbers(plot)[0], numbers(plot)[-2:]) == (str(shown[0]), ["Z:", "all"])
        plot.zoom(2, at)
        assert plot.window is None


async def test_a_few_rounds_are_as_near_as_it_gets() -> None:
    async with ZoomApp().run_test() as pilot:
        plot = pilot.app.query_one(ZoomPlot)
        plot.show(1000)
        for _ in range(12):
            plot.zoom(0.5, 500)
            first, last = plot.show(1000)
            assert first <= 500 <= last
        assert CLOSEST <= last - first <= 2 * CLOSEST


async def test_the_part_moves_within_what_there_is_and_with_the_round_that_is_shown() -> None:
    async with ZoomApp().run_test() as pilot:
        plot = pilot.app.query_one(ZoomPlot)
        plot.show(80)
        plot.zoom(0.25, 80)
        for windows, shown in ((-0.5, (50, 70)), (-0.5, (40, 60)), (2, (60, 80)), (-9, (0, 20)), (0.5, (10, 30))):
            plot.move(windows)
            assert plot.show(80) == shown
        assert plot.show(80, at=25) == (10, 30)
        assert plot.show(80, at=50) == (40, 60)
        assert plot.show(90, at=55) == (40, 60)  # there may be more rounds by now


async def test_the_curves_of_a_market_are_drawn_again_from_the_rounds_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, screen):
        plot = screen.query_one(ZoomPlot)
        await pilot.press("2", "m", "home", "z")
        assert plot.window == (0, 5)
        assert {xs[-1] for xs, *_ in plot._curves} == {1}
        await pilot.press("end", "v")  # whatever is drawn
        first, last = plot.window
        assert (last, plot._mark and plot._mark[0]) == (12, 12)
        assert {(xs[0], xs[-1]) for xs, *_ in plot._curves} == {(first, 12)}
        await pilot.press("Z")
        assert plot.window is None
        assert {xs[0] for xs, *_ in plot._curves} == {1}


async def test_both_plots_of_a_comparison_show_the_same_rounds(app: MarketApp, play_small: Play) -> None:
    async with app.run_test(size=(120, 50)) as pilot:
        app.push_screen(CompareScreen([play_small(), play_small(seed=2)], app))
        await pilot.pause()
        values, differences = app.screen.query(ZoomPlot)
        await pilot.press("z", "less_than_sign")
        assert values.window == differences.window == (3, 9)
        for plot in (values, differences):
            assert {(xs[0], xs[-1]) for xs, *_ in plot._curves} == {(3, 9)}
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
        [episodes] = app.screen.query_one(ZoomPlot)._curves
        assert (episodes.xs[0], episodes.xs[-1]) == (30, 40)
