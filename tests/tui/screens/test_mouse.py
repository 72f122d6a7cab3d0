"""The mouse: what is clicked does what one expects of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.events import MouseMove

from support.screens import painted, until, watching
from tui.app import MarketApp
from tui.panels.answers import AnswerPanel
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines
from tui.panels.gantt import CoreLines
from tui.panels.layout import PanelBar
from tui.panels.order_book import BookPanel
from tui.panels.panel import Panel
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import StartRunDialog
from tui.state.watched_run import Session
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList
from tui.widgets.key_bar import KeyBar

Play = Callable[..., Session]


@pytest.mark.parametrize("place", [(5, 0), (5, 4)], ids=["its frame", "its contents"])
async def test_a_click_anywhere_on_a_panel_gives_it_the_focus(
    app: MarketApp, play_small: Play, place: tuple[int, int]
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        for panel in screen.query(Panel):
            if panel.display:
                await pilot.press("1" if panel.NUMBER > 1 else "2")
                await pilot.click(panel, offset=place)
                assert panel.has_focus_within, panel.NAME
                assert screen.panels.active == panel.NUMBER


@pytest.mark.parametrize("lines", [ServicesTable, ClientGrid, EventLines, CoreLines])
async def test_a_click_chooses_a_line(
    app: MarketApp, play_small: Play, lines: type[ServicesTable | ClientGrid | EventLines | CoreLines]
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home")
        await pilot.pause()
        listed = screen.query_one(lines)
        await pilot.click(listed, offset=(3, 2))
        assert listed.cursor == listed.index_at(2)


async def test_two_clicks_on_a_cell_lead_to_its_line_in_the_order_book(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "3")
        await pilot.double_click(screen.query_one(ClientGrid), offset=(4, 4))
        await until(pilot, lambda: screen.query_one(BookPanel).chosen == (0, 3))


async def test_a_tab_is_clicked_and_what_is_beside_the_tabs_is_not(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (100, 24)) as (pilot, screen):
        bar = screen.query_one(PanelBar)
        at = painted(app).splitlines()[bar.region.y].index("8 Why")
        await pilot.click(bar, offset=(at + 20, 0))
        assert screen.panels.active == 1
        await pilot.click(bar, offset=(at, 0))
        assert screen.query_one(AnswerPanel).has_focus_within


async def test_of_two_keys_that_are_shown_together_that_under_the_mouse_is_pressed(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home")
        at = painted(app).splitlines()[-1].index("[ ] Seek")
        for place, round_ in ((2, 2), (2, 3), (0, 2), (5, 1)):  # on the word, the first of them
            await pilot.click(KeyBar, offset=(at + place, 0))
            await pilot.pause()
            assert screen.head.round == round_


async def test_a_run_is_chosen_by_a_click_and_opened_by_two(app: MarketApp, small: Path, play_small: Play) -> None:
    session = play_small()
    async with app.run_test(size=(120, 40)) as pilot:
        app.runs.sessions.append(session)
        app.push_screen(CompareScreen([session, play_small(rounds=5)], app))
        await pilot.pause()
        table = app.screen.query_one(CompareTable)
        await pilot.click(table, offset=(4, 3))
        assert (table.cursor, type(app.screen)) == (2, CompareScreen)
        await pilot.double_click(table, offset=(4, 3))
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.session is session)


async def test_an_entry_is_previewed_by_a_click_and_opened_by_two(app: MarketApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        entries = app.home.query_one(EntryList)
        await until(pilot, lambda: entries.filled and "  paper " in painted(app))
        line = next(y for y, text in enumerate(painted(app).splitlines()) if text.startswith("  paper "))
        place = (4, line - entries.region.y)
        await pilot.click(entries, offset=place)
        await until(pilot, lambda: getattr(entries.chosen, "name", "") == "paper")
        assert isinstance(app.screen, HomeScreen)
        await pilot.double_click(entries, offset=place)
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog))


async def test_the_round_follows_the_mouse_along_the_seek_bar(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.click("#seek", offset=(1, 0))
        for place, round_ in ((80, 7), (158, 12)):
            await pilot._post_mouse_events([MouseMove], "#seek", offset=(place, 0), button=1)
            assert screen.head.round == round_
        await pilot.hover("#seek", offset=(1, 0))
        assert screen.head.round == 12
