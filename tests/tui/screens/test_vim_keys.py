"""vim's keys: they move in lists and search them, wherever nothing else has them."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from scenarios.loader import parse
from support.screens import painted, until, watching
from tui.app import MarketApp
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines
from tui.panels.order_book import BookPanel
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.screens.help import HelpScreen
from tui.screens.home import HomeScreen
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import StartRunDialog
from tui.screens.search_line import NO_HIT, SearchLine
from tui.state.watched_run import Session
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList
from tui.widgets.tick_boxes import MarkList

Play = Callable[..., Session]


async def at_home(pilot: Pilot[None]) -> EntryList[object]:
    [screen] = (screen for screen in pilot.app.screen_stack if isinstance(screen, HomeScreen))
    entries = screen.query_one(EntryList)
    await until(pilot, lambda: entries.filled and entries.has_focus)
    return entries


async def test_at_home_they_move_and_find_what_was_searched_for(app: MarketApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        entries = await at_home(pilot)
        await pilot.press("g", "g")
        first = entries.highlighted
        assert first is not None
        await pilot.press("j", "j", "k")
        assert entries.highlighted == first + 1
        await pilot.press("G")
        assert entries.highlighted == entries.option_count - 1
        await pilot.press("g", "j", "g")  # not one after the other
        assert entries.highlighted == first
        await pilot.press("slash", *"paper", "enter", "n")
        await until(pilot, lambda: entries.chosen is not None)
        shown = list(entries.shown.values())
        assert entries.chosen is shown[1]
        await pilot.press("slash", "down")
        assert entries.has_focus
        await pilot.press("N")
        assert entries.chosen is shown[0]


async def test_on_the_market_screen_what_has_a_key_keeps_it(app: MarketApp, play_small: object) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        services, grid = screen.query_one(ServicesTable), screen.query_one(ClientGrid)
        await pilot.press("home", "j", "j", "k", "l", "l", "h")
        assert (services.cursor, screen.head.round) == (1, 2)
        await pilot.press("3", "j", "j", "l")
        assert (grid.cursor, grid.column) == (2, 0)  # h shows groups, so that l would lead where nothing leads back
        await pilot.press("h")
        assert grid.overview
        await pilot.press("5", "G")
        assert screen.query_one(EventLines).cursor == screen.query_one(EventLines).count - 1
        await pilot.press("g")
        assert isinstance(app.screen, GotoDialog)


async def test_the_help_lists_them_where_they_work(app: MarketApp, play_small: object) -> None:
    def listed() -> dict[str, str]:
        return {purpose: keys for keys, purpose in HelpScreen.of_focus(app, {})._keys}

    async with watching(app, play_small()) as (pilot, _):
        assert listed()["Choose another line"] == "↑ k ↓ j"
        assert listed()["Show the round before"] == "[ ← h"
        assert listed()["Go to the first or the last line"] == "ctrl+home ctrl+end G"
        await pilot.press("3")
        assert listed()["Choose another service"] == "← →"
        app.push_screen(CompareScreen([play_small(), play_small(rounds=5)], app))
        await pilot.pause(0.2)
        assert listed()["Go to the first or the last line"] == "ctrl+home gg ctrl+end G"
        assert listed()["Search the list for words"] == "/"


async def test_the_order_book_is_searched_for_a_client(app: MarketApp, play_small: object) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        book = screen.query_one(BookPanel)
        await pilot.press("home", "4", "slash", *"5")
        assert isinstance(app.screen, SearchLine)
        assert screen.selected[1] == 5  # as one types
        await pilot.press("enter")
        assert book.chosen == (0, 5)
        began = book.target.cursor
        await pilot.press("slash", *"no such word")
        assert NO_HIT in painted(app)
        assert book.target.cursor == began
        await pilot.press("escape")
        assert (app.screen, book.target.cursor) == (screen, began)


async def test_what_was_searched_for_is_found_again_in_a_table(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = [play_small(), play_small(scenario_text.replace('"lcfa"', '"d-first"'))]
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(CompareScreen(sessions, app))
        await pilot.pause()
        table = app.screen.query_one(CompareTable)
        await pilot.press("slash", *"gamma", "enter")
        assert table.cursor == 4
        await pilot.press("n")
        assert table.cursor == 5
        await pilot.press("n")  # past the end
        assert table.cursor == 4
        await pilot.press("N")
        assert table.cursor == 5
        await pilot.press("g", "g", "slash", "enter")  # the same words again
        assert table.cursor == 4


async def test_they_search_the_list_of_a_dialog_and_are_letters_in_a_field(app: MarketApp, small: object) -> None:
    text = (app.folder / "small.toml").read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(StartRunDialog(parse(text), text, "small.toml", app.out))
        await pilot.pause()
        policies = app.screen.query_one(MarkList)
        await pilot.press("slash", *"mahdrl", "n")
        assert policies.highlighted == 0  # no policy is called mahdrln
        await pilot.press("backspace", "enter")
        found = policies.highlighted
        assert found
        await pilot.press("n")
        assert (policies.highlighted or 0) > found  # after mahdrl-paper
        await pilot.press("N", "k", "space")
        assert len(policies.selected) == 2


@pytest.mark.parametrize(("words", "found"), [("4", 1), ("client 14", 1), ("3.8", 2), ("bid", 2), ("40", 0)])
def test_a_whole_number_is_not_found_as_part_of_another(words: str, found: int) -> None:
    from tui.style.formats import matches

    lines = ("client 4 bids 3.80", "client 14 bids 13.85")
    assert sum(matches(line, words.split()) for line in lines) == found
