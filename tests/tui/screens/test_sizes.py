"""The screens at every size: no key, button or name is lost that one cannot do without."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Button

from support.screens import painted, until, watching
from support.tiers import slow
from tui.app import MarketApp
from tui.panels.event_log import EventLines
from tui.panels.services import ServicesTable
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import StartRunDialog
from tui.state.watched_run import Session
from tui.widgets.tick_boxes import MarkList

Play = Callable[..., Session]
SIZES = [(80, 24), (120, 40), *slow(((160, 48),), ((200, 60),))]
LONG = "a-service-whose-name-has-as-many-letters-as-a-name-may-have-64ab"


def bottom(app: MarketApp) -> str:
    return painted(app).splitlines()[-1]


def titles(app: MarketApp) -> str:
    return next(line for line in painted(app).splitlines() if "accuracy → target" in line)


async def test_services_lose_columns_and_get_them_back(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (200, 60)) as (pilot, screen):
        table = screen.query_one(ServicesTable)
        wide = titles(app)
        assert wide.split()[-2:-1] == ["set"]
        for width, last in ((120, "policy"), (80, "served"), (200, "set")):
            await pilot.resize_terminal(width, 40)
            await pilot.pause(0.2)
            assert titles(app).split()[-2] == last
            assert not table.show_horizontal_scrollbar
            assert table.max_scroll_x == 0
        assert titles(app) == wide


@pytest.mark.parametrize("size", SIZES)
async def test_a_long_name_is_cut_and_the_numbers_stay(
    app: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(scenario_text.replace("alpha", LONG)), size) as (pilot, screen):
        await pilot.press("1")
        await pilot.pause(0.2)
        row = next(line for line in painted(app).splitlines() if "1  a-service" in line)
        assert "…" in row or LONG in row
        assert "→  50.0" in row
        assert not screen.query_one(ServicesTable).show_horizontal_scrollbar


async def test_the_status_of_a_run_is_told_in_full_at_80_columns(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, _):
        await pilot.press("home")
        first, second = painted(app).splitlines()[:2]
        assert first.split("  ")[1].rstrip() == "small · as-configured · seed 1"
        assert second.rstrip().endswith("spent")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_an_event_is_told_in_full_on_lines_that_end_where_words_do(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("home", "5")
        await pilot.pause(0.2)
        lines = screen.query_one(EventLines)
        told = [lines.line(i) for i in range(lines.count)]
        assert all(label.cell_len + words.cell_len <= lines.room for label, words in told)
        whole = " ".join(words.plain for _, words in told)
        assert "alpha has all bids; the lowest is" in whole
        assert lines.line(0)[1].plain.split()[0] == "all"


async def test_the_cursor_steps_over_events_and_stays_on_its_event_in_another_width(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, screen):
        await pilot.press("home", "5")
        lines = screen.query_one(EventLines)

        def chosen() -> int:
            return lines._lines[lines.cursor][0]

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


@pytest.mark.parametrize("size", SIZES)
async def test_with_a_panel_maximised_the_keys_that_lead_out_are_shown_and_work(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("4")
        before = [panel.display for panel in screen.panels.all]
        if size[0] >= 120:
            await pilot.press("m")
            await pilot.pause()
            assert "m Restore esc Restore q Quit" in bottom(app)
            await pilot.press("escape")
            await pilot.pause()
            assert [panel.display for panel in screen.panels.all] == before
            assert "m Max esc Back q Quit" in bottom(app)
        else:
            assert " Max " not in bottom(app)  # one panel has all the room anyway
        assert "? Help" in bottom(app)
        await pilot.press("escape")
        assert app.screen is not screen


async def test_keys_for_which_there_is_no_room_are_counted_out_and_help_has_them(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, _):
        assert "…" in bottom(app)
        assert "x Export" not in bottom(app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Export a table as CSV, or a picture of the screen" in [purpose for _, purpose in app.screen._keys]  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", SIZES)
async def test_the_run_dialog_lists_the_policies_that_there_is_room_for_and_its_buttons_come_next(
    small: Path, size: tuple[int, int]
) -> None:
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog) and app.screen.query("#go"), "the dialog")
        await pilot.pause(0.3)
        policies, box = app.screen.query_one(MarkList), app.screen.query_one(".box")
        rows = policies.size.height
        assert rows == policies.option_count or box.outer_size.height == size[1] - 1
        button = app.screen.query_one("#go")
        assert button.region.y == policies.region.bottom + 1  # the line between is for problems
        assert box.region.bottom == button.region.bottom + 2  # padding and border


@pytest.mark.parametrize("dialog", ["run", "goto"])
async def test_a_dialog_keeps_its_buttons_in_a_terminal_that_is_too_small(
    small: Path, play_small: Play, dialog: str
) -> None:
    app = MarketApp(out=small / "runs", folder=small)
    async with app.run_test(size=(40, 12)) as pilot:
        assert "40 x 12 is too small; 80 x 24 shows all" in bottom(app)
        if dialog == "run":
            app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        else:
            app.push_screen(GotoDialog(play_small().history, 3))
        await pilot.pause(0.3)
        button = app.screen.query_one("#go", Button)
        assert button.region.bottom <= 11
        assert str(button.label) in painted(app)


async def test_ctrl_c_says_how_to_quit_without_markup(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("ctrl+c")
        await pilot.pause()
        [note] = app._notifications
        assert "Press q to quit" in note.message
        assert "[" not in note.message


async def test_events_are_as_wide_as_their_panel_where_it_is_shown_first(app: MarketApp, play_small: Play) -> None:
    app.settings.panel = 5  # in which the user was last
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        lines = screen.query_one(EventLines)
        await until(pilot, lambda: lines.has_focus and lines.count)
        await pilot.pause(0.2)
        assert lines.count == len(lines.events)  # each is on one line
