"""How the screens look, at 80x24 and 160x48. After a wanted change: pytest --snapshot-update, and look at them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import tui.catalogue
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.market import MarketScreen
from tui.screens.shock import ShockDialog
from tui.session import Session

SIZES = [(80, 24), (160, 48)]
Compare = Callable[..., bool]
Play = Callable[..., Session]


@pytest.fixture
def still(small: Path, monkeypatch: pytest.MonkeyPatch) -> MarketApp:
    """An app that finds the small scenario alone, and where nothing moves or blinks."""
    monkeypatch.setattr(tui.catalogue, "builtins", list)
    app = MarketApp(out=small / "runs", folder=small)
    app.animation_level = "none"
    return app


# A blinking cursor or a late redraw can change a picture on a busy machine: these are for eyes at the keyboard, and the
# tests of state beside them are what CI holds the screens to.
pytestmark = pytest.mark.skipif("CI" in os.environ, reason="pictures depend on timing: run them without CI set")


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
def test_home(still: MarketApp, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await settle(pilot)

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_market(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still.runs))
        await pilot.pause()
        await pilot.press("home", "]", "]", "3", "down")
        await settle(pilot)

    assert snap_compare(still, terminal_size=size, run_before=before)


def test_a_walk_through_events(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        screen = MarketScreen(play_small(), still.runs)
        still.push_screen(screen)
        await pilot.pause()
        await pilot.press("home")
        screen.head.event = 24
        await pilot.press("e")
        await settle(pilot)

    assert snap_compare(still, terminal_size=(160, 48), run_before=before)


def test_the_order_book_of_a_client(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still.runs))
        await pilot.pause()
        await pilot.press("home", "4", "b", "m")
        await settle(pilot)

    assert snap_compare(still, terminal_size=(80, 24), run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_configure(still: MarketApp, scenario_text: str, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        text = scenario_text.replace("rounds = 12", "rounds = 0")
        screen = ConfigureScreen(text, "small.toml", Path("small.toml"), still.runs, still.out, still.folder)
        still.push_screen(screen)
        await pilot.pause()
        await settle(pilot)

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_compare(
    still: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int], snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        sessions = [play_small(), play_small(scenario_text.replace('"lcfa"', '"d-first"'), rounds=9)]
        still.push_screen(CompareScreen(sessions, still.runs))
        await pilot.pause()
        await settle(pilot)

    assert snap_compare(still, terminal_size=size, run_before=before)


def test_shock(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(ShockDialog(play_small(), 5))
        await pilot.pause()
        await settle(pilot)

    assert snap_compare(still, terminal_size=(80, 24), run_before=before)
