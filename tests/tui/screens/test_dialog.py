"""Dialogs and the command line close once, also when keys come faster than they go."""

from collections.abc import Callable

import pytest
from rich.style import Style
from textual.events import Click
from textual.widgets import Input, OptionList

from support.screens import hold, until, watching
from tui.app import MarketApp
from tui.screens.palette import Palette
from tui.state.watched_run import Session

Play = Callable[..., Session]


@pytest.mark.parametrize(("opening", "second"), [("g", "escape"), ("slash", "enter")])
async def test_keys_at_once_close_a_dialog_alone(app: MarketApp, play_small: Play, opening: str, second: str) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press(opening)
        app.simulate_key("enter")
        app.simulate_key(second)
        await pilot.pause()
        assert app.screen is screen


async def test_what_would_close_a_dialog_below_the_command_line_closes_neither(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, _):
        await pilot.press("g")
        dialog = app.screen
        await pilot.press("ctrl+p")
        dialog.dismiss()
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        assert dialog in app.screen_stack


async def test_enter_that_is_pressed_twice_closes_the_command_line_alone(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("colon")
        app.screen.query_one(Input).value = "Why"
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1, "the command")
        await pilot.press("down")
        await hold(pilot, "enter", 2)
        assert app.screen is screen


async def test_the_command_line_opens_again_at_once(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("colon")
        first = app.screen
        first.dismiss()
        app.action_command_palette()
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        assert app.screen is not first


async def test_a_click_on_a_command_that_has_gone_does_nothing(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("colon")
        commands = app.screen.query_one(OptionList)
        await until(pilot, lambda: commands.region, "the commands")
        where, gone = commands.region, Style(meta={"option": 1000})
        click = Click(commands, 1, 1, 0, 0, 1, False, False, False, where.x + 1, where.y + 1, style=gone)
        commands.post_message(click)
        await pilot.pause()
        assert isinstance(app.screen, Palette)


async def test_the_command_line_may_be_closed_while_commands_are_gathered(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("colon")
        palette = app.screen
        assert isinstance(palette, Palette)
        await palette.dismiss()
        gathering = palette._gather_commands("why")
        await until(pilot, lambda: gathering.is_finished, "the commands")
        assert app._exception is None
