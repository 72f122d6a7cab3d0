"""The command line: what one wants to do is found by a word for it."""

from collections.abc import Callable

import pytest
from textual.command import CommandList

from support.screens import until, watching
from tui.app import MarketApp
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.palette import Palette
from tui.state.watched_run import Session


@pytest.mark.parametrize(
    ("word", "command", "key"),
    [
        ("fork", "Intervene", "i"),
        ("intervention", "Intervene", "i"),
        ("compare", "Compare", "c"),
        ("export", "Export", "x"),
        ("csv", "Export", "x"),
        ("speed", "Speed", "+"),
        ("lower", "Slower", "-"),
        ("pause", "Replay", "space"),  # of a run that is over
        ("refused", "Next outbid", "o"),
        ("suspend", "Suspend", "ctrl+z"),
        ("nord", "Theme nord", ""),
        ("batch", "Watch all runs", ""),
    ],
)
async def test_a_word_finds_the_command_and_its_key(
    app: MarketApp, play_small: Callable[..., Session], word: str, command: str, key: str
) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, _):
        await pilot.press("colon", *word)
        assert isinstance(app.screen, Palette)
        offered = app.screen.query_one(CommandList)
        await until(pilot, lambda: offered.option_count and command in str(offered.options[0].prompt), command)
        assert f"key {key} · " * bool(key) in str(offered.options[0].prompt)


async def test_enter_does_it(app: MarketApp, play_small: Callable[..., Session]) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, _):
        await pilot.press("colon", *"fork")
        offered = app.screen.query_one(CommandList)
        await until(pilot, lambda: offered.option_count == 1 and "Intervene" in str(offered.options[0].prompt))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, InterventionDialog), "the dialog")
