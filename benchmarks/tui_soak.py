"""A soak of the screens: seeded random keys for a long time, while a runner plays a surrogate market at full speed.

    python benchmarks/tui_soak.py --minutes 30

A line every half minute says how much memory the app takes. It ends with status 1 at the first exception.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from textual.pilot import Pilot
from tui_screens import market, shown

from flmarket.cli.launch import collect_rarely
from scenarios.running.steering import Start
from tui.app import MarketApp
from tui.screens.market import MarketScreen

KEYS = (
    *("space", "s", "e", "E", "+", "-", "[", "]", "left", "right", "{", "}", "home", "end", "f", "n", "N", "o", "O"),
    *("v", "b", "w", "h", "m", "1", "2", "3", "4", "5", "6", "7", "up", "down", "pageup", "pagedown", "enter", "tab"),
    *("?", "escape", "slash", "g", "x", "i", "c", "ctrl+p"),
)
PAUSES = (0.01, 0.03, 0.1)
"""Seconds between two keys."""

LINES = 30.0
"""Seconds between two lines."""


def memory() -> float:
    """Return the megabytes that this process takes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("this system does not say how much memory a process takes")


def soak(seconds: float, seed: int, keys: Sequence[str]) -> bool:
    """Press keys for some time; return whether nothing went wrong."""
    draw = random.Random(seed)  # noqa: S311 - keys
    fine = True

    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # exports go into the current folder
        app = MarketApp(out=Path(folder) / "runs", folder=Path(folder))
        start = Start(market(20, 3, 1_000_000), "soak", str(Path(folder) / "runs"))

        async def use(_: Pilot[None], screen: MarketScreen) -> None:
            nonlocal fine
            session, began = screen.session, time.monotonic()
            pressed, last = 0, began
            while time.monotonic() < began + seconds and fine:
                app.simulate_key(draw.choice(keys))
                pressed += 1
                await asyncio.sleep(draw.choice(PAUSES))
                if not any(isinstance(found, MarketScreen) for found in app.screen_stack):
                    app.show_market(session)
                fine = app._exception is None
                if time.monotonic() >= last + LINES:
                    last = time.monotonic()
                    rounds = sum(len(found.history) for found in app.runs.sessions)
                    print(
                        f"{last - began:5.0f} s  {pressed} keys  {rounds} rounds in {len(app.runs.sessions)} runs  "
                        f"{memory():.0f} MB",
                        flush=True,
                    )
            # A palette must not search while the app ends.
            while app.screen is not screen and len(app.screen_stack) > 1:
                app.pop_screen()
            await asyncio.sleep(1)

        asyncio.run(shown(app, lambda: app.runs.start(start, "soak"), use))
    return fine


def main() -> int:
    """Soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keys", nargs="+", default=KEYS, help="the keys to choose from")
    given = parser.parse_args()
    collect_rarely()  # as `flmarket tui` does
    return 0 if soak(60 * given.minutes, given.seed, given.keys) else 1


if __name__ == "__main__":
    sys.exit(main())
