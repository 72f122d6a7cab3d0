"""Takes pictures of all screens at four sizes, dark and light, and writes docs/screens.md. `make gallery`.

The runs are those of the quickstart scenario.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import chdir
from itertools import product
from math import ceil
from pathlib import Path

from make import HERE, SCENARIO, until
from PIL import Image
from textual.pilot import Pilot
from textual.widgets import Input

from scenarios.loader import builtin_text
from tui.app import MarketApp
from tui.panels.answers import BestLines
from tui.screens.export_dialog import write_picture

SIZES = ((80, 24), (120, 40), (160, 48), (200, 60))
THEMES = {"dark": "textual-dark", "light": "textual-light"}
POLICIES = ("as-configured", "hqfa", "random")
CELL = 8
"""Pixels of a picture from one letter to the next: a whole number, so that letters are alike and compress well."""
WIDTH = 12.2
"""The same in the SVG."""
AGE = 49 * 3600
"""Seconds since the runs were played."""
TRAINING = ("--backend", "surrogate", "--episodes", "60", "--evaluate-every", "5", "--out", "agents/mine")


def flmarket(*words: str) -> None:
    """Run a command in the current folder."""
    line = [sys.executable, "-P", "-m", "flmarket.cli.main", *words, "-q"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own module


def played() -> list[Path]:
    """Play the runs, and make one look as if it had been interrupted. Return the others."""
    for more in ([], [word for name in POLICIES[1:] for word in ("--policy", name)]):
        flmarket("run", SCENARIO, *more, "--seeds", "2", "--out", "runs")
    [whole] = Path("runs").glob("*/random/seed-0001")
    (whole / "meta.json").unlink()
    runs = sorted(Path("runs").glob("*/*/seed-*"))
    ago = time.time() - AGE
    for run in runs:  # all of one age, so that lists look the same each time
        for file in (run, *run.iterdir()):
            os.utime(file, (ago, ago))
    return [run for run in runs if (run / "meta.json").exists()]


async def home(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Home, with a run's preview."""
    await until(pilot, lambda: any(entry.state for entry in app.screen.entries))  # type: ignore[attr-defined]
    await pilot.press("end")


async def run_dialog(_: Pilot[None], app: MarketApp, __: list[Path]) -> None:
    """The run dialog."""
    app.ask_and_run(builtin_text(SCENARIO), "quickstart.toml")


async def configure(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Configure, at the services."""
    app.show_form(builtin_text(SCENARIO), "quickstart.toml", None)
    await until(pilot, lambda: app.screen.query("FieldRow"))
    app.screen.query_one("#form").active = "tab-services"  # type: ignore[attr-defined]
    await until(pilot, lambda: app.screen.query("#service-form FieldRow"))


async def market(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """The market in round 13, with the second service chosen."""
    session = app.runs.open(runs[0])
    app.show_market(session)
    await until(pilot, lambda: session.over and app.screen.query("#services-table"))
    await pilot.press("g", *"13", "enter", "1", "down")


async def order_book(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """The order book of a round with an offer that was outbid, maximised."""
    await market(pilot, app, runs)
    await pilot.press("o", "4", "m")


async def answers(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Answers: the best set that a service could have had."""
    await market(pilot, app, runs)
    await pilot.press("o", "B")
    await until(pilot, lambda: app.screen.query_one(BestLines).count)


async def rivalry(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Rivalry: the summary of a run that has ended."""
    await market(pilot, app, runs)
    await pilot.press("f", "7")


async def intervention_dialog(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """The intervention dialog."""
    await market(pilot, app, runs)
    await pilot.press("i")


async def help_(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Help for the panel of services."""
    await market(pilot, app, runs)
    await pilot.press("question_mark")


async def compare(pilot: Pilot[None], app: MarketApp, runs: list[Path]) -> None:
    """Compare: three policies, a run each."""
    sessions = [app.runs.open(next(run for run in runs if run.parent.name == name)) for name in POLICIES]
    app.show_comparison(sessions)
    await until(pilot, lambda: all(session.over for session in sessions))


async def batch(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Batch: all runs of a folder."""
    app.show_batch(app.out)
    await until(pilot, lambda: getattr(app.screen, "look", None))


async def training(pilot: Pilot[None], app: MarketApp, _: list[Path]) -> None:
    """Training: one that has ended."""
    app.show_trainings([Path("agents/mine.csv")])
    await until(pilot, lambda: app.screen.feeds[0].episodes)  # type: ignore[attr-defined]


Show = Callable[[Pilot[None], MarketApp, list[Path]], Awaitable[None]]
SCREENS: tuple[Show, ...] = (
    home, run_dialog, configure, market, order_book, answers, rivalry, intervention_dialog, help_, compare, batch,
    training,
)  # fmt: skip


def picture(show: Show, size: tuple[int, int], word: str) -> str:
    """Return the name of a picture's file."""
    return f"{show.__name__.strip('_').replace('_', '-')}-{size[0]}x{size[1]}-{word}.webp"


def write_small(svg: str, path: Path) -> None:
    """Write a picture in no more colours and pixels than it takes."""
    scale = CELL / WIDTH
    found = re.search(r'viewBox="0 0 (\S+) (\S+)"', svg)
    assert found is not None  # noqa: S101 - Textual writes it
    width, height = (ceil(float(length) * scale) for length in found.groups())
    size = f'viewBox="0 0 {width / scale} {height / scale}" width="{width}" height="{height}"'
    png = path.with_suffix(".png")
    write_picture(svg.replace(found[0], size), png)
    with Image.open(png) as whole:
        few = whole.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.convert("RGB").save(path, lossless=True, quality=100, method=6)
    png.unlink()


async def pictures(place: Path, runs: list[Path]) -> None:
    """Take all pictures."""
    Input.cursor_blink = False
    for show, size in product(SCREENS, SIZES):
        app = MarketApp(out=Path("runs"), folder=Path())
        app.animation_level = "none"
        async with app.run_test(size=size) as pilot:
            await show(pilot, app, runs)
            for word, theme in THEMES.items():
                app.theme = theme
                await pilot.pause(0.7)
                write_small(app.export_screenshot(title="flmarket"), place / picture(show, size, word))


def page() -> str:
    """Return the page that shows all pictures."""
    parts = [
        "# All screens",
        "After this page you know how [the screens](tui.md) look at 80x24, 120x40, 160x48 and 200x60, dark and light.\n"
        "`make gallery` takes the pictures, of runs of `quickstart`, and writes this page.",
    ]
    for show in SCREENS:
        parts.append(f"## {(show.__doc__ or '').rstrip('.')}")
        rows = [f"| | {' | '.join(THEMES)} |", f"|{'---|' * (1 + len(THEMES))}"]
        for size in SIZES:
            cells = [f"![{word}](screenshots/gallery/{picture(show, size, word)})" for word in THEMES]
            rows.append(f"| {size[0]}x{size[1]} | {' | '.join(cells)} |")
        parts.append("\n".join(rows))
    parts.append("Next: [why the screens are as they are](decisions/screens.md).")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    os.environ["NO_MOTION"] = "1"  # pictures are of whole rounds
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # paths are shown
        flmarket("train", "paper", *TRAINING)
        asyncio.run(pictures(HERE / "gallery", played()))
    (HERE.parent / "screens.md").write_text(page(), encoding="utf-8")
