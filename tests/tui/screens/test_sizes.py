"""The screens at every size, where no key, button or name is lost that one needs; and the mouse on them."""

import re
from pathlib import Path

import pytest
from rich.text import Text
from textual.events import MouseMove
from textual.pilot import Pilot
from textual.widgets import Button

from des.log_records import MarketEvent
from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from support.screens import Play, notes, painted, screen_of, until, watching
from support.shell import flmarket
from tui.app import MarketApp
from tui.panels import event_log
from tui.panels.answers import AnswerPanel
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines
from tui.panels.gantt import CoreLines
from tui.panels.layout import PANELS, PanelBar
from tui.panels.order_book import BookPanel
from tui.panels.panel import Panel
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import StartRunDialog
from tui.style.sentences import event_words
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList
from tui.widgets.key_bar import KeyBar

SIZES = [(80, 24), (120, 40), (160, 48), (200, 60)]
LONG = "a-service-whose-name-has-as-many-letters-as-a-name-may-have-64ab"


def bottom(app: MarketApp) -> str:
    return painted(app).splitlines()[-1]


def titles(app: MarketApp) -> str:
    return next(line for line in painted(app).splitlines() if "accuracy → target" in line)


async def resized(pilot: Pilot[None], size: tuple[int, int]) -> None:
    await pilot.resize_terminal(*size)
    await pilot.pause(0.2)


async def test_services_lose_columns_and_get_them_back(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(state=RunState.RUNNING), (200, 60)) as (pilot, screen):
        table = screen.query_one(ServicesTable)
        wide = titles(app)
        assert wide.split()[-2:-1] == ["set"]
        for width, last in ((120, "reward"), (80, "served"), (200, "set")):
            await resized(pilot, (width, 40))
            assert titles(app).split()[-2] == last
            assert not table.show_horizontal_scrollbar
            assert table.max_scroll_x == 0
        assert titles(app) == wide


async def test_a_long_name_is_cut_and_the_numbers_stay(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    async with watching(app, play_small(scenario_text.replace("alpha", LONG))) as (pilot, screen):
        await pilot.press("1")
        for size in SIZES:
            await resized(pilot, size)
            row = next(line for line in painted(app).splitlines() if "1  a-service" in line)
            assert "…" in row or LONG in row
            assert "→  50.0" in row
            assert not screen.query_one(ServicesTable).show_horizontal_scrollbar


async def test_panels_are_side_by_side_where_there_is_room_and_rivalry_and_answers_have_places_of_their_own(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, screen):

        def there() -> set[int]:
            return {panel.NUMBER for panel in screen.panels.all if panel.display}

        for size in ((160, 48), (200, 60)):
            await resized(pilot, size)
            assert there() == set(range(1, 9))
            regions = [panel.region for panel in screen.panels.all]
            assert sum(region.area for region in regions) == screen.query_one("#panels").region.area
            assert not any(one.overlaps(other) for one in regions for other in regions if one is not other)
            for key in "7865":
                await pilot.press(key)
                assert there() == set(range(1, 9))
                assert screen.panels.all[int(key) - 1].has_focus_within
            assert "esc Back" in bottom(app)  # nothing is closed: all have a place
        await pilot.press("8", "1", "2")
        for size, expected in (((159, 60), {1, 2, 3, 4, 5, 6}), ((160, 43), {1, 2, 3, 4, 5, 6}), ((80, 24), {2})):
            await resized(pilot, size)
            assert there() == expected
        await resized(pilot, (160, 48))
        await pilot.press("escape")
        assert app.screen is not screen


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the scenario of the paper, with surrogates in place of networks."""
    out = tmp_path_factory.mktemp("paper")
    flags = ["--set", "training.backend=surrogate", "--out", str(out), "-q"]
    assert flmarket("run", "paper", *flags).returncode == 0
    [run] = out.glob("*/*/seed-*")
    return run


def blank(app: MarketApp, panel: Panel) -> float:
    """The share of a panel's cells, inside its frame, that are in stretches of six blank ones and more."""
    room = panel.region.shrink((1, 1, 1, 1))
    lines = [line[room.x : room.right] for line in painted(app).splitlines()[room.y : room.bottom]]
    return sum(len(stretch) for line in lines for stretch in re.findall(" {6,}", line)) / room.area


@pytest.mark.slow
@pytest.mark.parametrize("question", ["W", "B"])
async def test_no_panel_of_a_large_terminal_is_mostly_blank_in_the_middle_of_a_run(
    app: MarketApp, paper: Path, question: str
) -> None:
    session = app.runs.open(paper)
    async with watching(app, session, (200, 60)) as (pilot, screen):
        await until(pilot, lambda: session.over, "all rounds")
        for round_ in (40, 41):  # in others some are a little more, and once a service has left, much more
            screen.show_round(round_)
            await pilot.press("3", "down", question)
            await until(pilot, lambda: all(worker.is_finished for worker in app.workers), "the best set")
            await pilot.pause(0.3)
            shares = {panel.NAME: round(blank(app, panel), 2) for panel in screen.panels.all if panel.display}
            assert [*shares] == [panel.NAME for panel in PANELS]
            assert max(shares.values()) <= 0.4, shares.items()


@pytest.mark.slow
async def test_events_are_told_in_full_and_the_cursor_steps_over_them(app: MarketApp, play_small: Play) -> None:
    app.settings.panel = 5  # in which the user was last
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        lines = screen.query_one(EventLines)

        def told() -> list[tuple[Text, Text]]:
            """The label and the words of each line; only the first line of an event has a label."""
            return [lines.line(row) for row in range(lines.count)]

        def chosen() -> int:
            return sum(bool(label.plain.strip()) for label, _ in told()[: lines.cursor + 1]) - 1

        await until(pilot, lambda: lines.has_focus and lines.count)
        await pilot.pause(0.2)
        assert lines.count == len(lines.events)  # each is on one line
        await pilot.press("home", "5")
        for size in ((80, 24), (120, 40)):
            await resized(pilot, size)
            assert "alpha has all bids; the lowest is" in " ".join(words.plain for _, words in told())
            assert all(label.cell_len + words.cell_len <= lines.room for label, words in told())
            assert lines.line(0)[1].plain.split()[0] == "all"
        assert lines.count > len(lines.events)  # some take more lines than one
        for step in range(1, len(lines.events)):
            await pilot.press("down")
            assert chosen() == step
        await until(pilot, lambda: lines.scroll_y == lines.max_scroll_y, "all of the last event")
        await pilot.press("up", "up")
        place = len(lines.events) - 3
        assert chosen() == place
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: lines.count == len(lines.events), "each on one line")
        assert chosen() == place


async def test_of_a_large_round_only_the_events_on_the_screen_are_put_in_words(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[MarketEvent] = []
    monkeypatch.setattr(event_log, "MOST_WRAPPED", 20)
    monkeypatch.setattr(event_log, "event_words", lambda event: told.append(event) or event_words(event))
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        await pilot.press("home", "5")
        await pilot.pause()
        told.clear()
        await pilot.press("right_square_bracket")
        await pilot.pause()
        lines = screen.query_one(EventLines)
        assert len(lines.events) == lines.count > 20  # a line each
        assert len({*told}) <= lines.size.height < lines.count
        await pilot.press("ctrl+end", "up", "up")
        assert lines.cursor == lines.count - 3
        await until(pilot, lambda: event_words(lines.events[-1]) in painted(app), "the last event")
        await pilot.press("e", "e", "e")  # a walk from the first event, which the cursor follows
        assert lines.cursor == lines.count - 1 == 2


@pytest.mark.slow
async def test_with_a_panel_maximised_keys_that_lead_out_are_shown_and_work(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        await pilot.press("4")
        assert "m" not in screen.active_bindings  # one panel has all the room anyway
        for size in SIZES[1:]:
            assert "? Help" in bottom(app)
            await resized(pilot, size)
            before = [panel.display for panel in screen.panels.all]
            await pilot.press("m")
            await pilot.pause()
            assert "esc Restore" in bottom(app)
            await pilot.press("escape")
            await pilot.pause()
            assert [panel.display for panel in screen.panels.all] == before
            assert "esc Back" in bottom(app)
        await pilot.press("escape")
        assert app.screen is not screen


async def test_a_dialog_keeps_its_buttons_in_a_small_terminal(app: MarketApp, small: Path, play_small: Play) -> None:
    async with app.run_test(size=(40, 12)) as pilot:
        assert "40 x 12 is too small; 80 x 24 shows all" in bottom(app)
        text = (small / "small.toml").read_text()
        for dialog in (StartRunDialog(parse(text), text, "small.toml", app.out), GotoDialog(play_small().history, 3)):
            app.push_screen(dialog)
            await pilot.pause(0.3)
            button = dialog.query_one("#go", Button)
            assert button.region.bottom <= 11
            assert str(button.label) in painted(app)


@pytest.mark.parametrize("size", SIZES)
async def test_notes_stand_on_the_line_of_keys_and_cover_nothing(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size, notifications=True) as pilot:
        app.push_screen(MarketScreen(play_small(), app))
        await pilot.pause()
        before = painted(app).splitlines()
        for keys, words in (("y", "1 line copied"), ("right", "Round 12 is the newest.")):
            await pilot.press(keys)
            await until(pilot, lambda words=words: bottom(app).strip() == words, words)
            assert painted(app).splitlines()[:-1] == before[:-1]
        path = "/home/someone/runs/small-01234567/hqfa/seed-0000/meta.json"
        app.notify(f"{path}: cannot be written: No space left on device", title="Exported", severity="error")
        await until(pilot, lambda: "Exported" in painted(app), "the error")
        found = painted(app).splitlines()
        assert found[:-2] == before[:-2]
        assert any(path in line for line in found[-2:])
        assert " ".join(" ".join(found[-2:]).split()).endswith("No space left on device")
        app.clear_notifications()
        await until(pilot, lambda: painted(app).splitlines() == before, "the keys")


@pytest.mark.parametrize("size", SIZES)
async def test_an_error_of_a_run_takes_two_lines_with_its_path_whole(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    path = "/home/someone/images/raw/digits-idx3-ubyte.gz"
    reason = f"data set 'emnist-digits': {path} lacks its last 4096 bytes; fetch it again"
    async with watching(app, play_small(), size) as (pilot, screen):
        screen.session.error = reason
        screen.session.move(RunState.FAILED)
        await until(pilot, lambda: "fetch it again" in painted(app), "the reason")
        lines = painted(app).splitlines()
        assert reason in " ".join(f"{lines[1]} {lines[2]}".split())
        assert any(path in line for line in lines)
        assert "●" in lines[3 if len(reason) > size[0] - 2 else 2]  # the seek bar is below it
        screen.session.error = None
        screen.session.move(RunState.COMPLETE)
        await until(pilot, lambda: "●" in painted(app).splitlines()[2], "the line that was taken")


async def test_ctrl_c_says_how_to_quit_without_markup(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("ctrl+c")
        await pilot.pause()
        [note] = notes(app)
        assert "Press q to quit" in note
        assert "[" not in note


@pytest.mark.slow
async def test_a_click_chooses_a_line_a_panel_a_key_and_a_round(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home")
        await pilot.pause()
        for place in ((5, 0), (5, 4)):  # on the frame of a panel, and on what is in it
            for panel in screen.query(Panel):
                if panel.display:
                    await pilot.press("1" if panel.NUMBER > 1 else "2")
                    await pilot.click(panel, offset=place)
                    assert panel.has_focus_within, panel.NAME
                    assert screen.panels.active == panel.NUMBER
        for lines in (ServicesTable, ClientGrid, EventLines, CoreLines):
            listed = screen.query_one(lines)
            await pilot.click(listed, offset=(3, 2))
            assert listed.cursor == listed.index_at(2)
        # Two clicks on a cell lead to its line in the order book.
        await pilot.press("home", "3")
        await pilot.double_click(screen.query_one(ClientGrid), offset=(4, 4))
        await until(pilot, lambda: screen.query_one(BookPanel).target.has_focus and screen.selected == (0, 3))
        # Of two keys that are shown together that under the mouse is pressed.
        await pilot.press("home", "1")
        at = painted(app).splitlines()[-1].index("[ ] Seek")
        for place, round_ in ((2, 2), (2, 3), (0, 2), (5, 1)):  # on the word, the first of them
            await pilot.click(KeyBar, offset=(at + place, 0))
            await pilot.pause()
            assert screen.head.round == round_
        # The round follows the mouse along the seek bar.
        await pilot.click("#seek", offset=(1, 0))
        for place, round_ in ((80, 7), (158, 12)):
            await pilot._post_mouse_events([MouseMove], "#seek", offset=(place, 0), button=1)
            assert screen.head.round == round_
        await pilot.hover("#seek", offset=(1, 0))
        assert screen.head.round == 12


async def test_a_tab_is_clicked_and_what_is_beside_the_tabs_is_not(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (100, 24)) as (pilot, screen):
        bar = screen.query_one(PanelBar)
        at = painted(app).splitlines()[bar.region.y].index("8 Why")
        await pilot.click(bar, offset=(at + 20, 0))
        assert screen.panels.active == 1
        await pilot.click(bar, offset=(at, 0))
        assert screen.query_one(AnswerPanel).has_focus_within


@pytest.mark.slow
async def test_runs_and_entries_are_chosen_by_a_click_opened_by_two(
    app: MarketApp, small: Path, play_small: Play
) -> None:
    session = play_small()
    async with app.run_test(size=(120, 40)) as pilot:
        entries = app.home.query_one(EntryList)
        await until(pilot, lambda: entries.filled and "  paper " in painted(app))
        line = next(y for y, text in enumerate(painted(app).splitlines()) if text.startswith("  paper "))
        place = (4, line - entries.region.y)
        await pilot.click(entries, offset=place)
        await until(pilot, lambda: getattr(entries.chosen, "name", "") == "paper")
        assert isinstance(app.screen, HomeScreen)
        await pilot.double_click(entries, offset=place)
        await screen_of(pilot, StartRunDialog)
        # A run is chosen by a click and opened by two.
        app.runs.sessions.append(session)
        app.push_screen(CompareScreen([session, play_small(rounds=5)], app))
        await pilot.pause()
        table = app.screen.query_one(CompareTable)
        await pilot.click(table, offset=(4, 3))
        assert (table.cursor, type(app.screen)) == (2, CompareScreen)
        await pilot.double_click(table, offset=(4, 3))
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.session is session)
