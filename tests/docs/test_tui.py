"""The walk at the top of docs/tui.md, key by key, with the run that the page speaks of."""

import subprocess
import sys
from pathlib import Path

import pytest
from textual.widgets import Input, Select

from fl.training import fused
from flmarket.core.installation import command
from support.screens import keys_are_handled, painted, screen_of, until  # noqa: F401
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen

PAGE = Path(__file__).parents[2] / "docs/tui.md"
RUNNERS = Path(__file__).parents[1] / "tui/runners"
OUTBID = "\N{MULTIPLICATION SIGN}"


def words(text: str) -> str:
    """Return a screen's or a page's text in one line, without frames and emphasis."""
    return " ".join(text.translate(str.maketrans("│╭╮╰╯─*`", "        ")).split())


@pytest.mark.slow
async def test_the_walk_of_the_page_is_as_it_says(tmp_path: Path) -> None:
    if not fused.available():
        pytest.skip("the page's numbers were made with the compiled kernel, which is not here")
    done = subprocess.run(
        command("flmarket.cli.main", "run", "quickstart", "--quiet"), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    [run] = tmp_path.glob("runs/quickstart-*/as-configured/seed-0000")
    page = words(PAGE.read_text())
    app = MarketApp(run=run, out=tmp_path / "runs", runner=(sys.executable, "-P", str(RUNNERS / "formula.py")))
    async with app.run_test(size=(160, 48)) as pilot:

        async def press(*keys: str) -> None:
            """Press keys, of which the page names each."""
            for key in keys:
                await pilot.press(*key) if key.isdecimal() else await pilot.press(key)
            await pilot.pause()

        async def shown(text: str) -> None:
            await until(pilot, lambda: words(text) in words(painted(app)), text)

        async def promised(text: str) -> None:
            assert words(text) in page
            await shown(text)

        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.session.over)
        market = app.screen
        assert isinstance(market, MarketScreen)
        await press("g", "10", "enter")
        await promised(f"{OUTBID} 0.90")
        await shown(f"12 1/1 ■ {OUTBID} 0.90 ●0 0.90")  # digits' cell of client 12, and strokes'
        await press("4", "m", "slash", "12", "enter")
        await shown(f"12 0.90 0.900001 0.90 {OUTBID}")
        await promised("lost the draw against strokes, which pays 0.90 too")
        await press("b")
        await shown("client 12, 1 of 1 cores in use")
        await promised("core 0")
        await promised("paid its bid; won the draw against digits")
        await press("escape", "e", "e")
        await shown("event 2/")
        assert market.selected == (0, 12)  # it is still the question about digits and client 12
        await press("7")
        await shown("who outbid whom")
        await press("i")
        dialog = app.screen
        assert isinstance(dialog, InterventionDialog)
        assert app.focused is dialog.query_one("#round")
        assert dialog.query_one("#round", Input).value == "11"
        await promised("digits has left the market before round 11")
        await press("10", "shift+tab", "shift+tab", "enter", "down", "down", "down", "enter")
        assert dialog.query_one("#key", Select).value == "clients.cores"
        await press("tab", "2")
        assert [dialog.query_one(f"#{name}", Input).value for name in ("value", "round")] == ["2", "10"]
        await press("enter")
        fork, original = (await screen_of(pilot, CompareScreen)).sessions
        assert original is market.session
        assert fork.hurry == 9  # it shares the rounds before the tenth
        await press("escape")
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.session is fork
