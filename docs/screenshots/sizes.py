"""Takes pictures of the five screens at four sizes, dark and light: `python docs/screenshots/sizes.py OUT`.

Each is an SVG and a PNG, such as `market-120x40-light.png`. The runs are those of the quickstart scenario, played in
`OUT/runs` and found there the next time.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import chdir
from itertools import product
from pathlib import Path

from make import SCENARIO, until
from textual.pilot import Pilot
from textual.widgets import Input

from scenarios.loader import builtin_text
from tui.app import MarketApp
from tui.screens.export_dialog import write_picture

SIZES = ((80, 24), (120, 40), (160, 48), (200, 60))
THEMES = {"dark": "textual-dark", "light": "textual-light"}
POLICIES = ("as-configured", "hqfa", "random")
SEEDS = 2


def played(out: Path) -> list[Path]:
    """Play the runs, or find them; one of them is made to look as if it had been interrupted. Return the others."""
    if not out.exists():
        flags = [word for name in POLICIES[1:] for word in ("--policy", name)]
        for more in ([], flags):
            words = [sys.executable, "-P", "-m", "flmarket.cli.main", "run", SCENARIO, *more, "--seeds", str(SEEDS)]
            subprocess.run([*words, "--out", str(out), "-q"], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        [whole] = out.glob("*/random/seed-0001")
        (whole / "meta.json").unlink()
    runs = sorted(out.glob("*/*/seed-*"))
    for run in runs:  # all of one age, so that lists look the same each time
        for file in (run, *run.iterdir()):
            os.utime(file)
    return [run for run in runs if (run / "meta.json").exists()]


async def home(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Show home, with the scenario's preview."""
    await until(pilot, lambda: any(entry.state for entry in app.screen.entries))  # type: ignore[attr-defined]
    await pilot.press("down", "up")


async def dialog(_: Pilot[None], app: MarketApp, __: list[Path]) -> None:
    """Ask how to run the scenario."""
    app.ask_and_run(builtin_text(SCENARIO), "quickstart.toml")


async def market(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Show a round, with the second service chosen."""
    session = app.runs.open(runs[0])
    app.show_market(session)
    await until(pilot, lambda: session.over and app.screen.query("#services-table"))
    await pilot.press("g", *"13", "enter", "1", "down")


async def compare(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Compare the policies, a run each."""
    sessions = [app.runs.open(next(run for run in runs if run.parent.name == name)) for name in POLICIES]
    app.show_comparison(sessions)
    await until(pilot, lambda: all(session.over for session in sessions))


async def batch(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Show all runs of the folder."""
    app.show_batch(app.out)
    await until(pilot, lambda: getattr(app.screen, "look", None))


SCREENS: tuple[Callable[[Pilot[None], MarketApp, list[Path]], Awaitable[None]], ...] = (
    home, dialog, market, compare, batch,
)  # fmt: skip


async def pictures(place: Path) -> None:
    """Take all pictures."""
    Input.cursor_blink = False
    with chdir(place):  # paths are shown
        runs = played(Path("runs"))
        for show, size, (word, theme) in product(SCREENS, SIZES, THEMES.items()):
            app = MarketApp(out=Path("runs"), folder=Path())
            app.animation_level = "none"
            async with app.run_test(size=size) as pilot:
                app.theme = theme
                await pilot.pause()
                await show(pilot, app, runs)
                await pilot.pause(0.7)
                svg = app.export_screenshot(title="flmarket")
            for kind in ("svg", "png"):
                write_picture(svg, Path(f"{show.__name__}-{size[0]}x{size[1]}-{word}.{kind}"))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(pictures(folder))
