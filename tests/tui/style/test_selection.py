"""The row that is chosen: one tint behind all of it and a bar at its left, or reverse video, in tables and lists."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

from support.screens import until, watching
from tui.app import MarketApp
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.state.watched_run import Session
from tui.style.colors import BAR, contrast
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList

Play = Callable[..., Session]
ANSI = sorted(name for name, theme in BUILTIN_THEMES.items() if theme.ansi)
SEEN = 1.05
"""The contrast from which on two backgrounds are seen to differ."""


def chosen_row(widget: Widget) -> list[Segment]:
    """The cells of the one line of a widget that has the bar, as they are drawn."""
    widget.render_lines(widget.size.region)  # which looks up what the lines need
    rows = [list(widget.render_line(y)) for y in range(widget.size.height)]
    [row] = [row for row in rows if row[0].text.startswith(BAR)]
    return row


def looks(row: list[Segment]) -> set[tuple[object, bool]]:
    """The backgrounds of a line, and whether they are in reverse video."""
    return {(style.bgcolor, bool(style.reverse)) for _, style, _ in row if style is not None}


@pytest.mark.slow
async def test_in_every_theme_the_chosen_row_has_one_background_that_can_be_seen(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("1", "down")
        table = screen.query_one(ServicesTable)
        for theme in sorted(set(BUILTIN_THEMES) - set(ANSI)):
            app.theme = theme
            await pilot.pause()
            row = chosen_row(table)
            tint = app.theme_variables["block-cursor-background"]
            assert contrast(tint, app.theme_variables["background"]) >= SEEN, theme
            assert {color.get_truecolor().hex.upper() for color, _ in looks(row) if color} == {tint.upper()}, theme
            assert {reverse for _, reverse in looks(row)} == {False}, theme
            colors = {style.color for _, style, _ in row[1:] if style is not None}
            assert len(colors) > 3, theme  # the text keeps its own


async def test_tables_and_lists_show_it_alike(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("1", "down")
        found = [looks(chosen_row(screen.query_one(ServicesTable)))]
        app.push_screen(CompareScreen([play_small(), play_small(rounds=5)], app))
        await pilot.pause(0.3)
        found.append(looks(chosen_row(app.screen.query_one(CompareTable))))
        app.pop_screen()
        app.pop_screen()
        await until(pilot, lambda: app.home.entries, "the lists at home")
        await pilot.pause(0.3)
        found.append(looks(chosen_row(app.screen.query_one(EntryList))))
        assert len(found[0]) == 1
        assert found == [found[0]] * 3


@pytest.mark.parametrize("theme", [*ANSI, "textual-dark without colours"])
async def test_without_colours_of_our_own_all_of_it_is_in_reverse_video(
    theme: str, small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    if theme not in ANSI:
        monkeypatch.setenv("NO_COLOR", "1")
    app = MarketApp(out=small / "runs", folder=small)
    async with watching(app, play_small()) as (pilot, screen):
        app.theme = theme.partition(" ")[0]
        await pilot.press("1", "down")
        await pilot.pause()
        row = chosen_row(screen.query_one(ServicesTable))
        assert {bool(style.reverse) for _, style, _ in row if style is not None} == {True}
        assert len({style.color for _, style, _ in row if style is not None}) == 1
