"""Dialogs and the command line close once, also when keys come faster than they go."""

from collections.abc import Callable

from textual.widgets import Input, OptionList

from support.screens import hold, until, watching
from tui.app import MarketApp
from tui.state.watched_run import Session

Play = Callable[..., Session]


async def test_enter_and_escape_at_once_close_a_dialog_alone(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("g")
        app.simulate_key("enter")
        app.simulate_key("escape")
        await pilot.pause()
        assert app.screen is screen


async def test_enter_that_is_pressed_twice_closes_the_command_line_alone(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("colon")
        app.screen.query_one(Input).value = "Why"
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1, "the command")
        await pilot.press("down")
        await hold(pilot, "enter", 2)
        assert app.screen is screen
