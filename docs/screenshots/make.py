"""Makes the pictures beside this file: the real app over real runs of the quickstart scenario. `make screenshots`."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from scenarios.loader import builtin_text
from scenarios.running.protocol import Start
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.market import MarketScreen

HERE = Path(__file__).parent
SIZE = (150, 44)


async def until(pilot: Pilot[None], happened: Callable[[], object]) -> None:
    """Wait for something."""
    while not happened():
        await pilot.pause(0.1)
    await pilot.pause(0.3)


def save(app: MarketApp, name: str) -> None:
    """Save a picture under a name."""
    (HERE / f"{name}.svg").write_text(app.export_screenshot(title="flmarket"), encoding="utf-8")


async def main() -> None:
    """Walk through the screens."""
    text = builtin_text("quickstart")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs"
        app = MarketApp(out=out, folder=Path(folder))
        async with app.run_test(size=SIZE) as pilot:
            home = app.screen
            await until(pilot, lambda: getattr(home, "entries", None))

            form = ConfigureScreen(text, "quickstart.toml", Path("quickstart.toml"), app)
            app.push_screen(form)
            await until(pilot, lambda: form.query("FieldRow"))
            form.query_one("#form").active = "tab-services"  # type: ignore[attr-defined]
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

            await pilot.press("home", "]", "]")
            market.head.event = len(market.view.events) * 2 // 3
            await pilot.press("e")
            await pilot.pause(0.3)
            save(app, "events")
            await pilot.press("f", "home", "o", "4", "m")
            await pilot.pause(0.3)
            save(app, "order-book")

            other = app.runs.start(Start(text, "quickstart.toml", str(out), "hqfa"), "quickstart")
            app.push_screen(CompareScreen([session, other], app))
            await until(pilot, lambda: other.over)
            save(app, "compare")

            app.show_home()
            await until(pilot, lambda: any(entry.state for entry in home.entries))  # type: ignore[attr-defined]
            save(app, "home")


if __name__ == "__main__":
    asyncio.run(main())
