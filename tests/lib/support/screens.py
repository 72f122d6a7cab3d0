"""Waiting for screens, holding keys down, and opening the market screen."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import textual.app
from textual._context import active_app
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from scenarios.loader import dumps
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.processes import Process
from scenarios.running.steering import Start
from support.runs import RECORDED
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.state.feeds import DirectoryFeed, LiveRun
from tui.state.watched_run import Session

Play = Callable[..., Session]
"""A session in which a scenario was played: the fixture ``play_small``."""
Runner = Callable[[str], tuple[str, ...]]
"""The command of a runner, by its name: the fixture ``fake_runner``."""
ScreenType = TypeVar("ScreenType", bound=Screen[Any])
PATIENCE = 60.0
"""Seconds after which a wait has failed; on a busy machine everything takes longer."""


@pytest.fixture(autouse=True)
def keys_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, a click or a pause takes until all that it leads to is done, and no note goes before it is read.

    A conftest imports this fixture. Textual goes by the time that the process gets: on a busy machine it takes one that
    waits for its turn for idle.
    """
    idle, pause, notify = textual.app.wait_for_idle, Pilot.pause, MarketApp.notify

    async def done(*seconds: float) -> None:
        await at_rest()
        await redrawn(active_app.get())
        await idle(*seconds)  # in which what has changed is painted
        await at_rest()

    async def pause_until_done(pilot: Pilot[None], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await done(0)

    monkeypatch.setattr(textual.app, "wait_for_idle", done)
    monkeypatch.setattr(Pilot, "pause", pause_until_done)
    monkeypatch.setattr(MarketApp, "notify", lambda app, text, **more: notify(app, text, **more | {"timeout": 1000.0}))


async def at_rest() -> None:
    """Wait until nothing is left to do but to wait: for a time, for a thread, or for keys."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    while ready:
        await asyncio.sleep(0)


async def redrawn(app: App[Any]) -> None:
    """Wait for the redraw that the screen has put off, if it has."""
    screen = app.screen_stack[-1] if app.screen_stack else None
    redraw = getattr(screen, "_redraw", None)
    if screen is not None and redraw is not None and (due := redraw._timer) is not None:
        while redraw._timer is due and screen.is_running:
            await asyncio.sleep(0.01)


async def until(pilot: Pilot[None], happened: Callable[[], object], what: str = "what comes next") -> None:
    """Wait until something has happened, as long as it takes."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"waited in vain for: {what}"
        if pilot.app._exception is not None:
            raise pilot.app._exception
        await asyncio.sleep(0.02)  # a pilot's pauses call every widget
    await pilot.pause(0)


async def screen_of(pilot: Pilot[None], kind: type[ScreenType]) -> ScreenType:
    """Wait until a screen of a kind is there, with what is on it; return it."""
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, kind) and app.screen.query("*"), kind.__name__)
    assert isinstance(app.screen, kind)
    return app.screen


async def hold(pilot: Pilot[None], key: str, times: int) -> None:
    """Hold a key down: the app handles it so many times, and paints when it finds the time."""
    for _ in range(times):
        pilot.app.simulate_key(key)
    await pilot.pause()


def start_of(small: Path, **more: Any) -> Start:
    """The message that starts a run of the small scenario."""
    return Start((small / "small.toml").read_text(), "small.toml", str(small / "runs"), **more)


def write_run(session: Session, place: Path, rounds: int | None = None, **meta: Any) -> Path:
    """Write the directory of a run, as one that was interrupted after some rounds leaves it, or that ended so."""
    place.mkdir(parents=True)
    assert session.scenario is not None
    (place / "scenario.toml").write_text(dumps(session.scenario))
    for name, table in TABLES.items():
        table.path(place).write_text(table.header + "".join(one.text[name] for one in list(session.history)[:rounds]))
    (place / "run.log").touch()
    if meta:
        RunDirectory(place).finish({**RECORDED, **meta})
    return place


def replayed(run: Path) -> Session:
    """Return what a screen that follows a run directory to its end shows of it."""
    session = Session("replay")
    DirectoryFeed(session, run).read()
    return session


def runner_of(app: MarketApp, session: Session) -> int:
    """Return the process that plays a live run of an app."""
    feed = app.runs._feeds[session]
    assert isinstance(feed, LiveRun)
    return feed.pid


def play_headlessly(start: Start, runner: Sequence[str]) -> None:
    """Play a run to its end in a process that no screen watches."""
    session = Session("headless")
    live = LiveRun(session, start, Process(runner))
    live.read()
    live.close()
    assert session.state is RunState.COMPLETE, session.error


@asynccontextmanager
async def watching(
    app: MarketApp, session: Session, size: tuple[int, int] = (160, 48)
) -> AsyncIterator[tuple[Pilot[None], MarketScreen]]:
    """Run the app with a session on the market screen."""
    async with showing(app, MarketScreen(session, app), size) as both:
        yield both


@asynccontextmanager
async def showing(
    app: MarketApp, screen: ScreenType, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[None], ScreenType]]:
    """Run the app with a screen on that at home."""
    async with app.run_test(size=size) as pilot:
        app.push_screen(screen)
        await pilot.pause()
        yield pilot, screen


def strips(app: App[Any]) -> list[Strip]:
    """The lines that the terminal gets."""
    return app.screen._compositor.render_strips()


def painted(app: App[Any]) -> str:
    """The text that the terminal gets, without styles."""
    return "\n".join(strip.text for strip in strips(app))


def rendered(screen: Screen[Any], which: str | type[Widget]) -> str:
    """The words of a widget of a screen, before they are laid out on lines."""
    return str(screen.query_one(which).render())


def text_of(widget: Widget) -> str:
    """The text of a widget, line by line, also of what is not on the screen."""
    return "\n".join(strip.text for strip in widget.render_lines(widget.outer_size.region))


def notes(app: App[Any]) -> list[str]:
    """The messages that the app has shown in its corner and not cleared."""
    return [note.message for note in app._notifications]
