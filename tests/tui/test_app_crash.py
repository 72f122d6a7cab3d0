"""An exception in a screen ends the app with a traceback; live runs resume from checkpoints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.css.query import NoMatches
from textual.events import Key, MouseDown
from textual.widget import Widget

from support.screens import watching
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session
from tui.textual_internals import is_removed


def fail(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("by a test")


async def test_an_exception_ends_the_app(
    app: MarketApp, play_small: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MarketScreen, "action_export", fail)
    with pytest.raises(ZeroDivisionError) as caught:
        async with watching(app, play_small()) as (pilot, _):
            await pilot.press("x")
    assert app.crashed
    shown = str(caught.value.__rich__())  # type: ignore[attr-defined]
    assert "ZeroDivisionError: by a test\nThis is a defect of flmarket." in shown


async def test_a_widget_that_is_removed_may_lack_its_parts(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await app.screen.mount(widget := Widget())

        async def look() -> None:
            widget.query_one("#part")

        widget.remove()
        app.run_worker(look())
        await pilot.pause()
    assert not app.crashed


async def test_only_as_the_app_ends_others_may_lack_theirs(app: MarketApp) -> None:
    async with app.run_test():
        with pytest.raises(NoMatches) as caught:
            app.screen.query_one("#part")
        assert not is_removed(caught.value)
        app.exit()
        assert is_removed(caught.value)


async def test_a_key_that_arrives_while_the_app_ends_is_no_error(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.pause()
    assert not app.screen_stack
    await app.on_event(Key("x", "x"))
    assert not app.crashed


async def test_a_key_may_be_faster_than_the_screen_that_the_one_before_it_opens(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        app.show_batch(small)
        key = Key("space", " ")
        key._set_forwarded()  # a widget of the screen before had no use for it
        await app.on_event(key)
        await pilot.pause()
        assert "Only runs that have begun can be marked." in [note.message for note in app._notifications]


async def test_a_click_on_a_widget_that_is_removed_does_nothing(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.pause()
        widget = app.screen.query_one("#home-title")
        where = widget.region
        with app.batch_update():  # nothing is laid out anew
            await widget.remove()
            assert app.get_widget_at(where.x, where.y)[0] is widget  # still on the screen
            for x in (where.x, 1000):
                await app.on_event(MouseDown(widget, x, where.y, 0, 0, 1, False, False, False))
