"""Keys: what help says of them, those of vim, and the line of keys."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, OptionList, TabbedContent

from scenarios.loader import parse
from support.screens import Play, painted, screen_of, until, watching
from tui.app import MarketApp
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines
from tui.panels.order_book import BookPanel
from tui.panels.services import ServicesTable
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.dialog import MarkList
from tui.screens.help import HelpScreen, every_key
from tui.screens.home import HomeScreen
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import StartRunDialog
from tui.screens.search import NO_HIT, SearchLine
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList
from tui.widgets.key_bar import FEW, MORE, KeyBar

RAW = ("Scroll Left", "Scroll Right", "Page Left", "Page Down", "Focus Next", "Copy selected text", "Move cursor")


def listed(app: MarketApp) -> dict[str, str]:
    """The keys in the help for what has the focus, by their purpose."""
    return {purpose: keys for keys, purpose in HelpScreen.of_focus(app, {}).keys}


def check(lines: list[tuple[str, str]], of: str) -> None:
    keys = [key for written, _ in lines for key in written.split()]
    assert len(keys) == len(set(keys)), of
    assert len({purpose for _, purpose in lines}) == len(lines), of
    assert not [purpose for _, purpose in lines if purpose.startswith(RAW)], of


@pytest.mark.slow
async def test_each_key_is_listed_once_and_by_its_purpose(app: MarketApp, play_small: object, small: Path) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, _):
        for number in range(1, 9):
            await pilot.press(str(number))
            lines = HelpScreen.of_focus(app, {}).keys
            check(lines, f"panel {number}")
            assert ("[ ← h" in dict(lines)) == (number not in (3, 7)), number  # there, ← chooses or scrolls
            assert dict(lines)["space"] == "Pause or resume the run; play or stop a replay"
            assert "1 2 3 4 5 6 7 8" in dict(lines)
        others: list[Screen[None]] = [
            CompareScreen([session, play_small(rounds=5)], app),
            BatchScreen(small, app),
            HomeScreen(app),
        ]
        for other in others:
            app.push_screen(other)
            await pilot.pause(0.2)
            check(HelpScreen.of_focus(app, {}).keys, type(other).__name__)
        # vim's keys are listed where they work.
        for _ in others:
            app.pop_screen()
        await pilot.press("1")
        assert listed(app)["Choose another line"] == "↑ k ↓ j"
        assert listed(app)["Show the round before"] == "[ ← h"
        assert listed(app)["Go to the first or the last line"] == "ctrl+home ctrl+end G"
        await pilot.press("3")
        assert listed(app)["Choose another service"] == "← →"
        app.push_screen(CompareScreen([play_small(), play_small(rounds=5)], app))
        await pilot.pause(0.2)
        assert listed(app)["Go to the first or the last line"] == "ctrl+home gg ctrl+end G"
        assert listed(app)["Search the list for words"] == "/"


@pytest.mark.slow
async def test_the_keys_of_all_screens_are_searched(app: MarketApp, play_small: Play) -> None:
    def found() -> list[tuple[str, str]]:
        """The keys that are shown, each with where it works."""
        region = app.screen.query_one("#keys").region
        lines = [line[region.x : region.right].split() for line in painted(app).splitlines()]
        return [(line[0], line[-1]) for line in lines[region.y : region.bottom]]

    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("question_mark", "slash", *"fork")
        await pilot.pause(0.2)
        assert found() == [("i", "Market")]
        assert "accuracy of its model" not in painted(app)  # the words on the panel
        await pilot.press(*["backspace"] * 4, *"seeds", "enter")
        await pilot.pause(0.2)
        assert found() == [("s", "Compare"), ("enter", "Batch"), ("g", "Batch")]
        await pilot.press("slash", *["backspace"] * 5, "O")  # a key, not any word with an o
        await pilot.pause(0.2)
        assert found() == [("O", "Market")]
        await pilot.press("escape")
        assert "accuracy of its model" in painted(app)
        await pilot.press("escape")
        assert app.screen is screen


async def test_a_key_that_was_changed_is_listed_as_it_is_now(small: Path) -> None:
    app = MarketApp(out=small / "runs", folder=small)
    [row] = [
        row for row in every_key(app, {"market.pause": "p,ctrl+t"}) if row[1].startswith("Pause or resume the run")
    ]
    assert row[0] == "p ctrl+t"


async def at_home(pilot: Pilot[None]) -> EntryList[object]:
    [screen] = (screen for screen in pilot.app.screen_stack if isinstance(screen, HomeScreen))
    entries = screen.query_one(EntryList)
    await until(pilot, lambda: entries.filled and entries.has_focus)
    return entries


@pytest.mark.slow
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
        # In a field the help key is the one that is not typed.
        await until(pilot, lambda: "? Help" in line(app))
        await pilot.press("slash")
        await until(pilot, lambda: "F1 Help" in line(app))
        await pilot.press("question_mark")
        assert app.screen is app.home
        await pilot.press("f1")
        await screen_of(pilot, HelpScreen)


@pytest.mark.slow
async def test_on_the_market_screen_keys_stay_and_the_order_book_is_searched(
    app: MarketApp, play_small: object
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        services, grid = screen.query_one(ServicesTable), screen.query_one(ClientGrid)
        await pilot.press("home", "j", "j", "k", "l", "l", "h")
        assert (services.cursor, screen.head.round) == (1, 2)
        await pilot.press("3", "j", "j", "l")
        assert (grid.cursor, grid.column) == (2, 1)  # h shows groups, so that l would lead where nothing leads back
        await pilot.press("h")
        assert grid.overview
        await pilot.press("5", "G")
        assert screen.query_one(EventLines).cursor == screen.query_one(EventLines).count - 1
        await pilot.press("g")
        assert isinstance(app.screen, GotoDialog)
        await pilot.press("escape", "3", "h")
        screen.selected = (0, 0)
        table = screen.query_one(BookPanel).target
        await pilot.press("home", "4", "slash", *"5")
        assert isinstance(app.screen, SearchLine)
        assert screen.selected[1] == 5  # as one types
        await pilot.press("enter")
        assert table.bid(table.cursor) == screen.view.book.line(0, 5)
        began = table.cursor
        await pilot.press("slash", *"no such word")
        assert NO_HIT in painted(app)
        assert table.cursor == began
        await pilot.press("escape")
        assert (app.screen, table.cursor) == (screen, began)


@pytest.mark.slow
async def test_they_search_tables_and_lists_and_are_letters_in_a_field(
    app: MarketApp, play_small: Play, scenario_text: str, small: object
) -> None:
    sessions = [play_small(), play_small(scenario_text.replace('"lcfa"', '"d-first"'))]
    text = (app.folder / "small.toml").read_text()
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
        # They search the list of a dialog and are letters in a field.
        app.push_screen(StartRunDialog(parse(text), text, "small.toml", app.out))
        await pilot.pause()
        policies = app.screen.query_one(MarkList)
        await pilot.press("slash", *"mahdrl", "n")
        assert policies.highlighted == 0  # no policy is called mahdrln
        await pilot.press("backspace", "enter")
        found = policies.highlighted
        assert found
        await pilot.press("slash", "enter")
        assert (policies.highlighted or 0) > found  # after mahdrl-paper
        await pilot.press("up", "space")
        assert len(policies.selected) == 2


async def test_typing_searches_a_list_of_choices(app: MarketApp, scenario_text: str) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(dialog := StartRunDialog(parse(scenario_text), scenario_text, "small.toml", app.out))
        await pilot.pause()
        policies = dialog.query_one(MarkList)
        for word in ("ucb", "lcfa", "hqfa", "greedy"):  # whether they begin with a key of vim or not
            await pilot.press(*word)
            search = app.screen
            assert isinstance(search, SearchLine)
            assert search.query_one(Input).value == word
            assert "space marks it" in painted(app)
            await pilot.press("enter")
            assert word in str(policies.get_option_at_index(policies.highlighted or 0).prompt)
        for letter in (*"ghjkln", "G", "N"):
            await pilot.press(letter)
            assert app.screen.query_one(Input).value == letter
            await pilot.press("escape")
        policies.highlighted = 1
        await pilot.press("down", *"oort", "escape", "7")  # keys that have another meaning keep it
        assert policies.highlighted == 2
        assert dialog.query_one("#seed", Input).value == "7"


@pytest.mark.slow
async def test_space_marks_what_was_found_and_tab_leads_out_of_a_search(app: MarketApp, scenario_text: str) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(dialog := StartRunDialog(parse(scenario_text), scenario_text, "small.toml", app.out))
        await pilot.pause()
        policies = dialog.query_one(MarkList)
        await pilot.press(*"lcfa", "space", *"hqfa", "space")
        assert app.screen is dialog
        assert {"lcfa", "hqfa"} <= set(policies.selected)
        before = policies.selected
        await pilot.press(*"nowhere", "space")  # of which nothing can be marked
        assert app.screen.query_one(Input).value == "nowhere "
        assert policies.selected == before
        await pilot.press("escape")
        for key, focus in (("tab", "go"), ("shift+tab", "paused")):
            policies.focus()
            await pilot.press(*"hqfa", key)
            await pilot.pause()
            assert app.screen is dialog
            assert app.focused is dialog.query_one(f"#{focus}")
        assert policies.highlighted == [option.value for option in policies.options].index("hqfa")


@pytest.mark.slow
async def test_in_the_forms_lists_every_letter_begins_a_search(app: MarketApp, scenario_text: str) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(form := ConfigureScreen(scenario_text, "small.toml", None, app))
        await pilot.pause()
        form.query_one(TabbedContent).active = "tab-services"
        await until(pilot, lambda: form.query("#service-list"))
        listed = form.query_one("#service-list", OptionList)
        listed.focus()
        for letter in "ghjklnq":
            await pilot.press(letter)
            assert isinstance(app.screen, SearchLine)
            assert app.screen.query_one(Input).value == letter
            await pilot.press("escape")
        await pilot.press(*"gamma", "enter")
        assert "gamma" in str(listed.highlighted_option.prompt)


@pytest.mark.parametrize(("words", "found"), [("4", 1), ("client 14", 1), ("3.8", 2), ("bid", 2), ("40", 0)])
def test_a_whole_number_is_not_found_as_part_of_another(words: str, found: int) -> None:
    from tui.style.formats import matches

    lines = ("client 4 bids 3.80", "client 14 bids 13.85")
    assert sum(matches(line, words.split()) for line in lines) == found


def line(app: MarketApp) -> str:
    return painted(app).splitlines()[-1]


@pytest.mark.slow
async def test_the_keys_are_those_of_the_focus_and_a_click_presses_one(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (200, 48)) as (pilot, screen):
        await pilot.press("1")
        assert "space Replay" in line(app)  # of a run that is over
        assert "[ ] Seek" in line(app)  # the arrows, which are not shown, do the same
        assert "Overview" not in line(app)
        await pilot.press("3")
        await pilot.pause()
        assert "h Overview" in line(app)
        # Textual's own footer kept a widget for every key that it had ever shown.
        before = len(screen.query(Widget))
        watched = {id(found) for found, _ in watchers(screen)}
        for _ in range(3):
            await pilot.press("1", "2", "3", "4", "5")
        await pilot.pause()
        assert len(screen.query(Widget)) == before
        assert {id(found) for found, _ in watchers(screen)} == watched
        # A click beside the keys does nothing.
        await pilot.click(KeyBar, offset=(198, 0))
        await pilot.pause()
        assert app.screen is screen
        # A click on a key presses it.
        await pilot.click(KeyBar, offset=(line(app).index("? Help") + 3, 0))
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


async def test_the_line_of_keys_has_about_five_those_of_the_focus_first(
    app: MarketApp, play_small: Play, small: Path
) -> None:
    async with watching(app, play_small(), (200, 48)) as (pilot, screen):
        for number, first in ((1, "space"), (2, "v"), (3, "enter"), (4, "b"), (7, "v"), (8, "v")):
            await pilot.press(str(number))
            keys = [key for key in screen.query_one(KeyBar).shown if key != MORE]
            assert keys[0].written == first
            assert [key.written for key in keys[-1:]] == ["esc"]
            assert "q" not in [key.written for key in keys]
            assert {"?", "esc"} < {key.written for key in keys}
            assert len(keys) == FEW + 2
        for other in (CompareScreen([screen.session, play_small(rounds=5)], app), BatchScreen(small, app)):
            app.push_screen(other)
            await pilot.pause(0.2)
            assert 4 < len([key for key in other.query_one(KeyBar).shown if key != MORE]) <= FEW + 2
        await until(pilot, lambda: app.screen is other)
        app.pop_screen()
        app.pop_screen()
        app.pop_screen()
        await pilot.pause()
        assert "q Quit" in line(app)  # at home no key leads back


def watchers(screen: Widget) -> list[tuple[object, object]]:
    """What waits for changes of any widget of a screen, as Textual keeps it."""
    found = (getattr(widget, "__watchers", {}) for widget in screen.query(Widget))
    return [entry for kept in found for entries in kept.values() for entry in entries]
