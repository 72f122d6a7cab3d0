"""Makes the pictures beside this file: the real app over real runs of the quickstart scenario. `make screenshots`."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from animate import animated, local
from textual.pilot import Pilot

from scenarios.loader import builtin_text
from scenarios.running.steering import Start
from tui.app import MarketApp
from tui.demo import SCENARIO, play
from tui.panels.answers import BestLines
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.market import MarketScreen
from tui.screens.training import TrainingScreen

HERE = Path(__file__).parent
SIZE = (150, 44)
RECORDING = (120, 36)


async def until(pilot: Pilot[None], happened: Callable[[], object]) -> None:
    """Wait for something."""
    while not happened():
        await pilot.pause(0.1)
    await pilot.pause(0.3)


def save(app: MarketApp, name: str) -> None:
    """Save a picture under a name."""
    (HERE / f"{name}.svg").write_text(local(app.export_screenshot(title="flmarket")), encoding="utf-8")


async def pictures(folder: Path) -> None:
    """Walk through the screens."""
    text, out = builtin_text(SCENARIO), folder / "runs"
    app = MarketApp(out=out, folder=folder)
    async with app.run_test(size=SIZE) as pilot:
        home = app.screen
        await until(pilot, lambda: getattr(home, "entries", None))

        form = ConfigureScreen(text, "quickstart.toml", Path("quickstart.toml"), app)
        app.push_screen(form)
        await until(pilot, lambda: form.query("FieldRow"))
        form.query_one("#form").active = "tab-services"  # type: ignore[attr-defined]
        await until(pilot, lambda: form.query("#service-form FieldRow"))
        row = next(row for row in form.query("FieldRow") if row.path[-1] == "budget")  # type: ignore[attr-defined]
        row.query_one("Input").value = "-5"  # type: ignore[attr-defined]
        await until(pilot, lambda: form.problems)
        save(app, "configure")
        form.query_one("#form").active = "tab-market"  # type: ignore[attr-defined]
        await pilot.pause(0.5)
        save(app, "configure-market")
        app.pop_screen()

        session = app.runs.start(Start(text, "quickstart.toml", str(out), speed=2), "quickstart")
        market = MarketScreen(session, app)
        app.push_screen(market)
        await until(pilot, lambda: len(session.history) >= 5)
        await pilot.press("1", "down")
        await until(pilot, lambda: len(session.history) >= 6)
        save(app, "market")
        await pilot.press("+", "+", "+", "+")
        await until(pilot, lambda: session.over)
        await pilot.press("7")
        await pilot.pause(0.5)
        save(app, "rivalry")

        await pilot.press("6", "home", "]", "]")
        market.head.event = len(market.view.events) * 2 // 3
        await pilot.press("e")
        await pilot.pause(0.3)
        save(app, "events")
        await pilot.press("f", "home", "o", "4", "m")
        await pilot.pause(0.3)
        save(app, "order-book")
        await pilot.press("m", "B")
        await until(pilot, lambda: market.query_one(BestLines).count)
        save(app, "answers")

        other = app.runs.start(Start(text, "quickstart.toml", str(out), "hqfa"), "quickstart")
        app.push_screen(CompareScreen([session, other], app))
        await until(pilot, lambda: other.over)
        save(app, "compare")

        while app.screen is not home:
            await app.pop_screen()
        await until(pilot, lambda: any(entry.state for entry in home.entries))  # type: ignore[attr-defined]
        await pilot.press("home")  # an open run, whose preview has curves
        await until(pilot, lambda: home.query("Plot"))
        save(app, "home")


class Recording:
    """Plays the demo's script, and takes a picture where it says something. See ``tui.demo.Stage``."""

    def __init__(self, app: MarketApp, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot
        self.frames: list[tuple[str, float]] = []

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self._pilot.press(*keys)

    async def say(self, caption: str, seconds: float) -> None:
        """Take a picture that is shown for some seconds."""
        await self._pilot.pause(0.3)
        self.frames.append((self.app.export_screenshot(title=caption), seconds))

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for something."""
        await until(self._pilot, happened)


async def recording(folder: Path) -> None:
    """Record the demo."""
    app = MarketApp(out=folder / "recorded", folder=folder)
    async with app.run_test(size=RECORDING) as pilot:
        stage = Recording(app, pilot)
        await play(stage)
    (HERE / "recording.svg").write_text(animated(stage.frames), encoding="utf-8")


@contextmanager
def elsewhere(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in a process of its own, and end it if it has not ended by itself."""
    words = [sys.executable, "-P", "-m", "flmarket.cli.main", *arguments, "-q"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # noqa: S603 - our own module
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


async def followed(folder: Path) -> None:
    """Show what other processes play in the current folder: a batch, and a training."""
    out, agents = Path("runs"), Path("agents")  # relative, too
    out.mkdir()
    app = MarketApp(batch=out, out=out, folder=folder)
    policies = ("--policy", "hqfa", "--policy", "random", "--policy", "lcfa")
    with elsewhere("run", SCENARIO, *policies, "--seeds", "4", "--jobs", "2", "--out", str(out)) as batch:
        async with app.run_test(size=RECORDING) as pilot:
            await until(pilot, lambda: isinstance(app.screen, BatchScreen))
            await until(pilot, lambda: app.screen.look and app.screen.look.states["complete"] >= 4)  # type: ignore[attr-defined]
            # The time that is left is shown while a run plays; on a fast machine all may have ended by now.
            await until(pilot, lambda: batch.poll() is not None or any(it.left for it in app.screen.look.runs))  # type: ignore[attr-defined]
            save(app, "batch")
    log = agents / "mine.csv"
    app = MarketApp(trainings=[log], out=out, folder=folder)
    plan = ("--backend", "surrogate", "--episodes", "60", "--evaluate-every", "5")
    with elsewhere("train", "paper", *plan, "--out", str(log.with_suffix(""))):
        async with app.run_test(size=RECORDING) as pilot:
            await until(pilot, lambda: isinstance(app.screen, TrainingScreen))
            await until(pilot, lambda: len(app.screen.feeds[0].episodes) >= 26)  # type: ignore[attr-defined]
            save(app, "training")


async def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        await recording(Path(folder))
        await pictures(Path())  # relative: pictures show the path
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        await followed(Path(folder))


if __name__ == "__main__":
    os.environ["NO_MOTION"] = "1"  # pictures are of whole rounds
    asyncio.run(main())
