"""The line of keys: it follows the focus, and a click presses a key."""

from collections.abc import Callable

from textual.widget import Widget

from support.screens import painted, until, watching
from tui.app import MarketApp
from tui.screens.help import HelpScreen
from tui.state.watched_run import Session
from tui.widgets.key_bar import KeyBar

Play = Callable[..., Session]


def line(app: MarketApp) -> str:
    return painted(app).splitlines()[-1]


async def test_the_keys_are_those_of_what_has_the_focus(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (160, 48)) as (pilot, _):
        await pilot.press("1")
        assert "space Replay" in line(app)  # of a run that is over
        assert "f Newest" in line(app)  # the end key, which is not shown, does the same
        assert "Overview" not in line(app)
        await pilot.press("3")
        await pilot.pause()
        assert "h Overview" in line(app)


async def test_a_click_on_a_key_presses_it(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (160, 48)) as (pilot, screen):
        bar = screen.query_one(KeyBar)
        await pilot.click(bar, offset=(line(app).index("? Help") + 3, 0))
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


async def test_in_a_field_the_help_key_is_the_one_that_is_not_typed(app: MarketApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "? Help" in line(app))
        await pilot.press("slash")
        await until(pilot, lambda: "F1 Help" in line(app))
        await pilot.press("question_mark")
        assert app.screen is app.home
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_a_click_beside_the_keys_does_nothing(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (200, 48)) as (pilot, screen):
        await pilot.click(screen.query_one(KeyBar), offset=(198, 0))
        await pilot.pause()
        assert app.screen is screen


async def test_moving_the_focus_keeps_no_widgets(app: MarketApp, play_small: Play) -> None:
    """Textual's own footer kept a widget for every key that it had ever shown."""
    async with watching(app, play_small(), (160, 48)) as (pilot, screen):
        before = len(screen.query(Widget))
        watched = {id(found) for found, _ in watchers(screen)}
        for _ in range(3):
            await pilot.press("1", "2", "3", "4", "5")
        await pilot.pause()
        assert len(screen.query(Widget)) == before
        assert {id(found) for found, _ in watchers(screen)} == watched


def watchers(screen: Widget) -> list[tuple[object, object]]:
    """What waits for changes of any widget of a screen, as Textual keeps it."""
    found = (getattr(widget, "__watchers", {}) for widget in screen.query(Widget))
    return [entry for kept in found for entries in kept.values() for entry in entries]
