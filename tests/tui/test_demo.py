"""The demo: it plays its script to the end by itself, and any key takes over."""

import asyncio
from pathlib import Path

import pytest

from tui.demo import OVER, YOURS, DemoApp
from tui.screens.compare import CompareScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen


def notes(app: DemoApp) -> list[str]:
    return [note.message for note in app._notifications]


@pytest.mark.slow
async def test_it_shows_a_market_a_fork_and_what_that_changed_and_ends_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = DemoApp(tmp_path / "played", out=tmp_path / "own")
    said: list[tuple[str, type]] = []

    async def say(caption: str, seconds: float) -> None:
        said.append((caption, type(app.screen)))
        await asyncio.sleep(0.5)  # in which the screen can follow, as in the time that a caption is shown

    monkeypatch.setattr(app._terminal, "say", say)
    monkeypatch.setattr("tui.demo.LONGEST", 300.0)  # on a busy machine
    async with app.run_test(size=(120, 36)) as pilot:
        await app.workers.wait_for_complete([app._demo])
        await pilot.pause()
        assert [screen for _, screen in said].count(MarketScreen) == len(said) - 2
        assert said[-1] == ("Key c: what the change cost, service by service", CompareScreen)
        assert isinstance(app.screen, HomeScreen)
        assert notes(app) == [OVER]
        assert app.out == tmp_path / "own"


async def test_a_key_takes_over_and_does_nothing_else(tmp_path: Path) -> None:
    app = DemoApp(tmp_path / "played", out=tmp_path / "own")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("q")
        assert notes(app) == [YOURS]
        assert app._demo.is_cancelled or app._demo.is_finished
        assert app.out == tmp_path / "own"
        await pilot.press("question_mark")
        await pilot.pause()
        assert type(app.screen).__name__ == "HelpScreen"
