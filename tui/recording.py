"""Records a replay in asciinema's format: what the app draws, and the second of each drawing, by a clock of its own.

Format: https://docs.asciinema.org/manual/asciicast/v2/, a line of JSON for the terminal, then one for each drawing.
"""

import asyncio
import json
from io import StringIO
from pathlib import Path

from textual.drivers.headless_driver import HeadlessDriver

from flmarket.core.errors import InputError
from flmarket.core.files import replacing_text
from flmarket.core.rich_console import SafeConsole
from flmarket.core.tracking import tracked
from scenarios.logs.directory import RunDirectory
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.state.pace import to_watch
from tui.style.redraw import painted

SIZE = (120, 36)  # columns and rows
HIDDEN_CURSOR = "\x1b[?25l"
END = f"\x1b[{SIZE[1]};1H\r\n\x1b[?25h"  # for the shell in whose terminal it was played: below, with its cursor
LAST = 3.0  # seconds that the last round is shown


class Recorded(HeadlessDriver):
    """The terminal of the app that is recorded."""

    is_headless = False

    def write(self, data: str) -> None:
        assert isinstance(self._app, RecordedApp)  # noqa: S101 - the only one that has this driver
        self._app.drawings.append((self._app.clock, data))


class RecordedApp(MarketApp):
    """The app; it keeps what it draws."""

    def __init__(self, run: Path) -> None:
        super().__init__(run=run)
        self.driver_class = Recorded
        self.console = SafeConsole(file=StringIO(), color_system="truecolor", legacy_windows=False)  # wherever it plays
        self.clock = 0.0  # seconds since the recording began
        self.drawings = [(0.0, HIDDEN_CURSOR)]  # and what was drawn


def record(run: Path, file: Path, first: int = 1) -> int:
    """Record a replay of a run from a round on; return how many rounds that are.

    Raises:
        InputError: it is still played, or has no round that can be shown.
    """
    if RunDirectory(run).being_played():
        raise InputError(f"{run}: is being played; record it once it is over")
    app = RecordedApp(run)
    rounds = asyncio.run(_play(app, first))
    app.drawings.append((app.clock + LAST, END))
    columns, rows = SIZE
    head = {"version": 2, "width": columns, "height": rows, "title": f"flmarket: {run}"}
    lines = [json.dumps(head), *(json.dumps([round(at, 3), "o", data]) for at, data in app.drawings)]
    with replacing_text(file) as written:
        written.write("\n".join(lines) + "\n")
    return rounds


async def _play(app: RecordedApp, first: int) -> int:
    running = asyncio.create_task(app.run_async(size=SIZE, mouse=False))
    try:
        screen = await _market(app, running)
        rounds = len(screen.session.history)
        if not rounds:
            raise InputError(screen.session.error or f"{screen.session.directory}: no round was played")
        shown = range(first, rounds + 1)
        for number in tracked(shown, "recording"):
            app.clock = (number - first) / to_watch(len(shown))
            screen.show_round(number)
            await painted(screen)
    finally:
        app.exit()
        await running
    return len(shown)


async def _market(app: RecordedApp, running: asyncio.Task[None]) -> MarketScreen:
    """Wait until the run is read, and return its screen."""
    while not running.done():
        await asyncio.sleep(0.01)
        screen = app.screen_stack[-1] if app.screen_stack else None
        if isinstance(screen, MarketScreen) and screen.session.over:
            await painted(screen)
            return screen
    raise RuntimeError("the app has ended")
