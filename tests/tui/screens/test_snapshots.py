"""How the screens look, at 80x24 and 160x48. After a wanted change: pytest --snapshot-update, and look at them."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import tui.watching.catalogue
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.market import MarketScreen
from tui.screens.shock import ShockDialog
from tui.watching.session import Session

SIZES = [(80, 24), (160, 48)]
STEADY = 4
"""Looks, a pause apart, at which a picture must be the same before it is taken."""
PAUSE = 0.15
"""Seconds between two looks: longer than screens put a redraw off (``tui.widgets.redraw``)."""
PATIENCE = 60.0
Compare = Callable[..., bool]
Play = Callable[..., Session]


@pytest.fixture
def still(small: Path, monkeypatch: pytest.MonkeyPatch) -> MarketApp:
    """An app that finds the small scenario alone, and where nothing moves or blinks."""
    monkeypatch.setattr(tui.watching.catalogue, "builtins", list)
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.delenv("NO_COLOR", raising=False)  # some machines that run tests set it, and a user may
    app = MarketApp(out=small / "runs", folder=small)
    app.animation_level = "none"
    return app


async def settle(pilot: Pilot[None], words: str) -> None:
    """Wait until the screen says what it should, nothing works on it any more, and it looks the same for a while.

    Waiting takes as long as it takes: on a busy machine the picture comes later, and is the same one.
    """
    app, end = pilot.app, time.monotonic() + PATIENCE
    before, same = "", 0
    while same < STEADY:
        assert time.monotonic() < end, f"the screen did not come to rest with {words!r} on it"
        await pilot.pause(PAUSE)
        picture = app.export_screenshot().replace("&#160;", " ")
        resting = words in picture and all(worker.is_finished for worker in app.workers)
        same = same + 1 if resting and picture == before else 0
        before = picture


@pytest.mark.parametrize("size", SIZES)
def test_home(still: MarketApp, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "Three services, eight clients.")

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_market(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still))
        await pilot.pause()
        await pilot.press("home", "]", "]", "3", "down")
        await settle(pilot, "round 3/12")

    assert snap_compare(still, terminal_size=size, run_before=before)


def test_a_walk_through_events(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        screen = MarketScreen(play_small(), still)
        still.push_screen(screen)
        await pilot.pause()
        await pilot.press("home")
        screen.head.event = 24
        await pilot.press("e")
        await settle(pilot, "event 25/")

    assert snap_compare(still, terminal_size=(160, 48), run_before=before)


def test_the_order_book_of_a_client(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still))
        await pilot.pause()
        await pilot.press("home", "4", "b", "m")
        await settle(pilot, "Order book · client 3")

    assert snap_compare(still, terminal_size=(80, 24), run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_rivalry(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    """In the small terminal who outbid whom, in the large one the summary."""

    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still))
        await pilot.pause()
        await pilot.press("7", *("v" * (size[0] == 80)))
        await settle(pilot, "7 Rivalry · ")

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_configure(still: MarketApp, scenario_text: str, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        text = scenario_text.replace("rounds = 12", "rounds = 0")
        screen = ConfigureScreen(text, "small.toml", Path("small.toml"), still)
        still.push_screen(screen)
        await settle(pilot, "✘ small.toml:4")

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_compare(
    still: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int], snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        sessions = [play_small(), play_small(scenario_text.replace('"lcfa"', '"d-first"'), rounds=9)]
        still.push_screen(CompareScreen(sessions, still))
        await settle(pilot, "round 9")

    assert snap_compare(still, terminal_size=size, run_before=before)


def test_shock(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "Three services")  # the screen below, whose preview loads
        still.push_screen(ShockDialog(play_small(), 5, 0))
        await settle(pilot, "Fork the run")

    assert snap_compare(still, terminal_size=(80, 24), run_before=before)
