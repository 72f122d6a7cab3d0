"""The demo: the app plays itself for half a minute, with captions, and ends at home; any key or click takes over.

README's moving picture is a recording of the same script (``docs/screenshots/make.py``).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from textual.events import Event, Key, MouseDown, MouseScrollDown, MouseScrollUp

from scenarios.builtin import builtin_text
from scenarios.logs.run_state import RunState
from tui import screens
from tui.app import MarketApp
from tui.screens.home import HomeScreen

SCENARIO = "quickstart"
LONGEST = 60.0
"""Seconds after which the demo gives up waiting, on a machine that is too slow for it."""
APART = 8.0  # rounds per second of a fork and its original as their curves part
BETWEEN = 0.25  # seconds between two keys
YOURS = "The app is yours. ? shows the keys of a screen, esc leads back, q quits. This market's files go when you quit."
OVER = "That was a market; its files go when you quit. Enter runs the scenario that is highlighted, ? shows the keys."


class Stage(Protocol):
    """The stage on which the script is played: a terminal, or the recording of README's picture."""

    app: MarketApp

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""

    async def say(self, caption: str, seconds: float) -> None:
        """Show a caption for some seconds."""

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for something."""


async def play(stage: Stage) -> None:
    """Play the script: a live run, why an offer was refused, what if, and what that changed."""
    from scenarios.running.steering import Start

    app = stage.app
    session = app.runs.start(Start(builtin_text(SCENARIO), SCENARIO, str(app.out), speed=2), SCENARIO)
    app.show_market(session)
    for number in (2, 4, 6, 8):
        await stage.until(lambda number=number: len(session.history) >= number)  # type: ignore[misc]
        await stage.say("Three services compete for the same clients, round after round", 0.9)
    await stage.press("space", "O", "4", "m")
    await stage.say("Keys 4 and m: why each client trains for this service, or does not", 4)
    await stage.press("m", "f", "1", "down", "down", "i")  # of the third service, as the first may have left
    await stage.until(lambda: isinstance(app.screen, screens.InterventionDialog))
    await stage.say("Key i: what if this service had a quarter of its budget from now on?", 3)
    await stage.press("1")
    await stage.until(lambda: isinstance(app.screen, screens.CompareScreen))
    fork, shared = app.sessions[-1], len(session.history)
    for one in (session, fork):
        app.runs.play_at(one, APART)
    await stage.until(lambda: fork.state is RunState.PAUSED and len(fork.history) >= shared)
    await stage.say("The changed run is a fork, beside its original, which is left as it was", 3)
    await stage.press("space")
    for more in (3, 6, 9, 12):
        await stage.until(lambda more=more: fork.over or len(fork.history) >= shared + more)  # type: ignore[misc]
        await stage.say("The two part, round by round", 0.9)
    await stage.until(lambda: session.over and fork.over)
    await stage.say("What the change cost, service by service", 6)


class DemoApp(MarketApp):
    """The app that begins with the demo. Its runs are played into a folder that the caller removes."""

    def __init__(self, played: Path, *, out: Path, **opening: Any) -> None:
        super().__init__(out=played, **opening)
        self._own_out = out  # where the user's own runs go
        self._terminal = Terminal(self)
        self._playing = True

    def on_mount(self) -> None:
        super().on_mount()
        self._demo = self.run_worker(self._play(), exit_on_error=False)

    async def _play(self) -> None:
        with suppress(TimeoutError):
            await play(self._terminal)
        while not isinstance(self.screen, HomeScreen):
            await self.pop_screen()
        self._end(OVER)

    def _end(self, note: str) -> None:
        self._playing = False
        self.out = self.batch = self._own_out
        self.clear_notifications()
        self.notify(note, timeout=12)

    async def on_event(self, event: Event) -> None:
        """Let the user's first key or click end the demo; it does nothing else."""
        meant = isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp) and not event.is_forwarded
        own = event in self._terminal.pressed
        if own:
            self._terminal.pressed.remove(event)
        if self._playing and meant and not own:
            self._demo.cancel()
            self._end(YOURS)
        else:
            await super().on_event(event)


class Terminal:
    """Plays the script on the user's terminal. See ``Stage``."""

    def __init__(self, app: MarketApp) -> None:
        self.app = app
        self.pressed: list[Event] = []  # keys that have not arrived yet; all others are the user's

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.pressed.append(Key(key, key if len(key) == 1 else None))
            self.app.post_message(self.pressed[-1])
            await asyncio.sleep(BETWEEN)

    async def say(self, caption: str, seconds: float) -> None:
        self.app.notify(caption, timeout=seconds)
        await asyncio.sleep(seconds)

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(LONGEST):
            while not happened():
                await asyncio.sleep(0.05)
