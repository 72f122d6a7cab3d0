"""The three tasks of docs/decisions/screens.md, with the keys that its table names, on the market it speaks of."""

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from scenarios.loader import builtin_text
from scenarios.running.steering import Start
from support.screens import keys_are_handled, painted, play_headlessly, screen_of, until  # noqa: F401
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.dialog import Dialog
from tui.screens.market import MarketScreen

PAGE = Path(__file__).parents[2] / "docs/decisions/screens.md"
RUNNER = (sys.executable, "-P", str(Path(__file__).parents[1] / "tui/runners/formula.py"))


def keys(task: str) -> list[str]:
    """The keys that the table has for a task now, as many as it says."""
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {task}")]
    count, _, written = row.split("|")[3].partition(":")
    found = re.findall("`(.+?)`", written)
    assert len(found) == int(count)
    return [{"↓": "down", "/": "slash"}.get(key, key) for key in found]


@asynccontextmanager
async def at_home(
    folder: Path, size: tuple[int, int]
) -> AsyncIterator[tuple[Pilot[None], Callable[[str], Awaitable[MarketApp]]]]:
    """The app at home; yields what presses the keys of a task, and waits where they lead to another screen."""
    play_headlessly(Start(builtin_text("quickstart"), "quickstart", str(folder / "runs")), RUNNER)
    app = MarketApp(out=folder / "runs", folder=folder, runner=RUNNER)
    async with app.run_test(size=size) as pilot:

        def ready() -> bool:
            match app.screen:
                case MarketScreen(session=session):
                    return session.over or session.origin is not None
                case CompareScreen(sessions=sessions):
                    return all(session.over for session in sessions)
                case screen:
                    return isinstance(screen, Dialog)

        async def press(task: str) -> MarketApp:
            for key in keys(task):
                await pilot.press(key)
                await pilot.pause()
                if key in {"enter", "i", "c"}:
                    await until(pilot, ready, f"what {key} leads to")
            return app

        await until(pilot, lambda: any(entry.is_run for entry in app.home.entries), "the run")
        yield pilot, press


def lines(app: MarketApp, *words: str) -> list[str]:
    """The lines on the screen that have all words."""
    return [line for line in painted(app).splitlines() if all(word in line for word in words)]


def both_are_complete(app: MarketApp) -> bool:
    return painted(app).count("✔ complete") == 2


@pytest.mark.slow
async def test_why_a_service_lost_a_client(tmp_path: Path) -> None:
    async with at_home(tmp_path, (80, 24)) as (pilot, press):
        app = await press("why did `strokes` lose client 8 in round 10?")
        why = "strokes did not get client 8: outbid by digits: 1.80 < 3.80."
        await until(pilot, lambda: why in " ".join(painted(app).replace("│", " ").split()), why)


@pytest.mark.slow
async def test_two_policies_are_compared(tmp_path: Path) -> None:
    async with at_home(tmp_path, (120, 40)) as (pilot, press):
        app = await press("compare the policies `random` and `hqfa`")
        assert isinstance(app.screen, CompareScreen)
        await until(pilot, lambda: both_are_complete(app), "the end of both runs")
        for service in ("digits", "strokes", "scribbles"):
            [first] = lines(app, "1  random", service)
            [second] = lines(app, "2  hqfa", service)
            assert not re.search(r"[+-]\d", first)  # the baseline
            assert re.search(r"\d\d\.\d\d  [+-]\d+\.\d\d", second)  # accuracy, and its difference


@pytest.mark.slow
async def test_a_budget_is_cut_and_what_it_did_is_seen(tmp_path: Path) -> None:
    async with at_home(tmp_path, (120, 40)) as (pilot, press):
        app = await press("cut the budget of `strokes` from 20 to 5 after round 10")
        await screen_of(pilot, CompareScreen)
        await until(pilot, lambda: both_are_complete(app), "the end of both runs")
        assert lines(app, "strokes: test accuracy")  # the curves
        [cut] = lines(app, "1  strokes.budget = 5", "  strokes  ")
        _, later, _, less = re.findall(r"[+-]\d+(?:\.\d\d)?", cut)
        assert int(later) > 0  # the target is met later
        assert float(less) < 0  # for less money
