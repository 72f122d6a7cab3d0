"""An exception in a screen while runs are live: the screen goes, the runs stay."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot

import tui.screens.export
from scenarios.running.protocol import Start
from support.screens import until, watching
from tui.app import MarketApp
from tui.screens.configure import ConfigureScreen
from tui.screens.export import ExportDialog
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.watching.session import Phase, Session
from tui.widgets.panels import Panels
from tui.widgets.seekbar import SeekBar
from tui.widgets.statusline import StatusLine


def fail(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("by a test")


@pytest.fixture(autouse=True)
def _reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crash reports do not go into the folder of whoever runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def live(app: MarketApp, small: Path) -> Callable[[], Session]:
    """Starts a run that waits: its process is there for as long as the app."""
    start = Start((small / "small.toml").read_text(), "small.toml", str(small / "runs"), paused=True)
    return lambda: app.runs.start(start, "small")


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> Iterator[None]:
    """Make a method fail."""
    with monkeypatch.context() as patch:
        patch.setattr(where, name, fail)
        yield


def notes(app: MarketApp) -> list[str]:
    return [note.message for note in app._notifications]


def still_plays(app: MarketApp, session: Session) -> bool:
    """Whether a run's process is there, and takes commands."""
    os.kill(app.runs._feeds[session].pid, 0)  # type: ignore[attr-defined]
    return app.runs.steerable(session) and session.phase is Phase.PAUSED


async def reported(pilot: Pilot[None], app: MarketApp) -> None:
    """Wait for the line about the exception."""
    line = "this is a defect of flmarket: ZeroDivisionError: by a test; please report it with the crash report "
    await until(pilot, lambda: [note for note in notes(app) if note.startswith(line)], "the report")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name"),
    [
        (SeekBar, "render_line"),  # painting
        (MarketScreen, "action_export"),  # a key
        (MarketScreen, "draw"),  # a key
        (StatusLine, "show"),  # a message
        (Panels, "fold"),  # a resize
    ],
)
async def test_a_screen_that_fails_is_dropped_and_its_run_continues(
    app: MarketApp, live: Callable[[], Session], monkeypatch: pytest.MonkeyPatch, where: type, name: str
) -> None:
    async with app.run_test(size=(160, 48)) as pilot:
        session = live()
        app.show_market(session)
        await until(pilot, lambda: session.phase is Phase.PAUSED, "the runner")
        app.runs.send(session, "step")
        await until(pilot, lambda: app.screen.head.round == 1, "a round")  # type: ignore[attr-defined]
        with failing(monkeypatch, where, name):
            await pilot.press("x")
            await pilot.press("escape", "right")
            app.runs.send(session, "step")
            await pilot.resize_terminal(150, 44)
            await until(pilot, lambda: len(session.history) == 2, "the next round")
            await reported(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "the home screen")
        assert still_plays(app, session)
        # It is opened again, and everything works.
        app.show_market(session)
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.head.round == 2, "the run")
        await pilot.press("x")
        assert isinstance(app.screen, ExportDialog)
    assert not app.crashed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compose", "on_mount"])
async def test_a_screen_that_cannot_be_opened_is_dropped(
    app: MarketApp, small: Path, live: Callable[[], Session], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = (small / "small.toml").read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        session = live()
        await until(pilot, lambda: session.phase is Phase.PAUSED, "the runner")
        with failing(monkeypatch, ConfigureScreen, name):
            app.show_form(text, "small.toml", None)
            await reported(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "the home screen")
        app.show_form(text, "small.toml", None)
        await until(pilot, lambda: app.screen.query("FieldRow"), "the form")
        assert still_plays(app, session)


async def test_a_dialog_that_fails_is_dropped_and_the_screen_below_stays(
    app: MarketApp, live: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        session = live()
        app.show_market(session)
        await until(pilot, lambda: session.phase is Phase.PAUSED, "the runner")
        app.runs.send(session, "step")
        await until(pilot, lambda: app.screen.head.round == 1, "a round")  # type: ignore[attr-defined]
        market = app.screen
        await pilot.press("x")
        with failing(monkeypatch, tui.screens.export, "write_csv"):
            app.screen.query_one("#go").press()  # type: ignore[attr-defined]
            await reported(pilot, app)
        await until(pilot, lambda: app.screen is market, "the market")
        await pilot.press("home")
        assert still_plays(app, session)


async def test_the_home_screen_is_made_anew_and_ends_the_app_only_if_the_new_one_fails_at_once(
    app: MarketApp, live: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it comes up when the app ends
        async with app.run_test(size=(120, 40)) as pilot:
            first = app.screen
            await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
            session = live()
            await until(pilot, lambda: session.phase is Phase.PAUSED, "the runner")
            with failing(monkeypatch, HomeScreen, "_preview"):
                await pilot.press("down")
                await reported(pilot, app)
            await until(pilot, lambda: app.screen is not first and getattr(app.screen, "entries", None), "a new one")
            assert still_plays(app, session)
            monkeypatch.setattr(HomeScreen, "_preview", fail)
            await pilot.press("down")
            await until(pilot, lambda: not app.is_running, "the end")
    assert app.crashed


async def test_a_key_that_fails_on_the_home_screen_leaves_it_as_it_is(
    app: MarketApp, live: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
        first, session = app.screen, live()
        await until(pilot, lambda: session.phase is Phase.PAUSED, "the runner")
        with failing(monkeypatch, HomeScreen, "action_compare"):
            for _ in range(5):
                await pilot.press("c")
            await reported(pilot, app)
        assert app.screen is first
        assert still_plays(app, session)


async def test_without_live_runs_an_exception_ends_the_app(
    app: MarketApp, play_small: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MarketScreen, "action_export", fail)
    with pytest.raises(ZeroDivisionError):
        async with watching(app, play_small()) as (pilot, _):
            await pilot.press("x")
    assert app.crashed


async def test_a_key_that_arrives_while_the_app_ends_is_no_error(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.pause()
    assert not app.screen_stack
    await app._dispatch_message(Key("x", "x"))
    assert not app.crashed
