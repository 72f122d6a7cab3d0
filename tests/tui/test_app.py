"""The app as a whole: an exception ends it with a traceback, and the demo plays its script by itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.css.query import NoMatches
from textual.events import Key, MouseDown
from textual.widget import Widget

from support.screens import Play, notes, watching
from tui.app import MarketApp
from tui.demo import OVER, YOURS, DemoApp
from tui.screens.compare import CompareScreen
from tui.screens.home import HomeScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen
from tui.textual_internals import is_removed


def fail(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("by a test")


async def test_an_exception_ends_the_app(app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MarketScreen, "action_export", fail)
    with pytest.raises(ZeroDivisionError) as caught:
        async with watching(app, play_small()) as (pilot, _):
            await pilot.press("x")
    assert app.crashed
    shown = str(caught.value.__rich__())
    assert "ZeroDivisionError: by a test\nThis is a defect of flmarket." in shown


async def test_what_comes_while_a_widget_or_the_app_goes_does_no_harm(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        # A widget that is removed may lack its parts.
        await app.screen.mount(widget := Widget())

        async def look() -> None:
            widget.query_one("#part")

        widget.remove()
        app.run_worker(look())
        await pilot.pause()
        # A click on a widget that is removed does nothing.
        await pilot.pause()
        widget = app.screen.query_one("#home-title")
        where = widget.region
        with app.batch_update():  # nothing is laid out anew
            await widget.remove()
            assert app.get_widget_at(where.x, where.y)[0] is widget  # still on the screen
            for x in (where.x, 1000):
                await app.on_turn(MouseDown(widget, x, where.y, 0, 0, 1, False, False, False))
        # A key may be faster than the screen that the one before it opens.
        app.show_batch(small)
        key = Key("space", " ")
        key._set_forwarded()  # a widget of the screen before had no use for it
        await app.on_event(key)
        await pilot.pause()
        assert "Only runs that have begun and are there can be marked." in notes(app)
        # Only as the app ends others may lack theirs.
        with pytest.raises(NoMatches) as caught:
            app.screen.query_one("#part")
        assert not is_removed(caught.value)
        app.exit()
        assert is_removed(caught.value)
    # A key that arrives while the app ends is no error.
    assert not app.screen_stack
    await app.on_event(Key("x", "x"))
    assert not app.crashed


@pytest.mark.slow
async def test_it_shows_a_market_and_a_fork_and_ends_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = DemoApp(tmp_path / "played", out=tmp_path / "own")
    said: list[tuple[str, type]] = []

    async def say(caption: str, seconds: float) -> None:
        said.append((caption, type(app.screen)))
        await asyncio.sleep(0.5)  # in which the screen can follow, as in the time that a caption is shown

    monkeypatch.setattr(app._terminal, "say", say)
    monkeypatch.setattr("tui.demo.LONGEST", 300.0)  # on a busy machine
    async with app.run_test(size=(120, 36)) as pilot:
        await app.workers.wait_for_complete([app._demo])
        await pilot.pause()
        screens = [screen for _, screen in said]
        assert screens == [MarketScreen] * 5 + [InterventionDialog] + [CompareScreen] * 6
        assert said[-1][0] == "What the change cost, service by service"
        assert isinstance(app.screen, HomeScreen)
        assert notes(app) == [OVER]
        assert app.out == tmp_path / "own"


@pytest.mark.slow
async def test_a_key_takes_over_and_does_nothing_else(tmp_path: Path) -> None:
    app = DemoApp(tmp_path / "played", out=tmp_path / "own")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("q")
        assert notes(app) == [YOURS]
        assert app._demo.is_cancelled or app._demo.is_finished
        assert app.out == tmp_path / "own"
        await pilot.press("question_mark")
        await pilot.pause()
        assert type(app.screen).__name__ == "HelpScreen"
