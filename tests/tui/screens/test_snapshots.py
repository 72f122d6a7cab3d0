"""How the screens look: five at four sizes, and at one of them in light colours; the others at one or two sizes.

After a wanted change: pytest --snapshot-update, and look at them.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import tui.state.catalogue
from support.shell import flmarket
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session

DARK, LIGHT = "textual-dark", "textual-light"
LOOKS = [((80, 24), DARK), ((160, 48), DARK), *slow(((120, 40), DARK), ((120, 40), LIGHT), ((200, 60), DARK))]
looks = pytest.mark.parametrize(
    ("size", "theme"), LOOKS, ids=lambda it: it[8:] if isinstance(it, str) else "x".join(map(str, it))
)
SIZES = [(80, 24), (160, 48)]
STEADY = 4
"""Looks, a pause apart, at which a picture must be the same before it is taken."""
PAUSE = 0.15
"""Seconds between two looks: longer than screens put a redraw off (``tui.style.redraw``)."""
PATIENCE = 60.0
Compare = Callable[..., bool]
Play = Callable[..., Session]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, scenario_text: str) -> Path:
    """Runs of the small scenario, one of which was interrupted; all ended two days ago."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "small.toml").write_text(scenario_text)
    flags = ["--policy", "hqfa", "--policy", "random", "--seeds", "2", "--set", "training.backend=surrogate", "-q"]
    assert flmarket("run", "small.toml", *flags, cwd=folder).returncode == 0
    next(folder.glob("runs/*/random/seed-0001/meta.json")).unlink()
    return folder / "runs"


@pytest.fixture
def still(small: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> MarketApp:
    """An app that finds the small scenario and its runs alone, and where nothing moves or blinks."""
    shutil.copytree(runs, small / "runs")
    ago = time.time() - 49 * 3600
    for path in (small / "runs").rglob("*"):
        os.utime(path, (ago, ago))
    monkeypatch.chdir(small)  # paths are shown
    monkeypatch.setattr(tui.state.catalogue, "builtins", list)
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.delenv("NO_COLOR", raising=False)  # some machines that run tests set it, and a user may
    app = MarketApp(out=Path("runs"), folder=Path())
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


@looks
def test_home(still: MarketApp, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
        await settle(pilot, "Three services, eight clients.")

    assert snap_compare(still, terminal_size=size, run_before=before)


@looks
def test_run_dialog(
    still: MarketApp, scenario_text: str, size: tuple[int, int], theme: str, snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
        await settle(pilot, "Three services, eight clients.")
        still.ask_and_run(scenario_text, "small.toml")
        await settle(pilot, "as configured: each service uses its own")

    assert snap_compare(still, terminal_size=size, run_before=before)


@looks
def test_batch(still: MarketApp, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
        still.show_batch(still.out)
        await settle(pilot, "interrupted")

    assert snap_compare(still, terminal_size=size, run_before=before)


@looks
def test_market(still: MarketApp, play_small: Play, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
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


@pytest.mark.parametrize(("key", "size"), [("W", (80, 24)), ("B", (120, 40))])
def test_answers(still: MarketApp, play_small: Play, key: str, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still))
        await pilot.pause()
        await pilot.press("home", "o", key)
        await settle(pilot, "one core more" if key == "B" else "for sure")

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [SIZES[0], *slow(*((size,) for size in SIZES[1:]))])
def test_rivalry(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    """In the small terminal who outbid whom, in the large one the summary."""

    async def before(pilot: Pilot[None]) -> None:
        still.push_screen(MarketScreen(play_small(), still))
        await pilot.pause()
        await pilot.press("7", *("v" * (size[0] == 80)))
        await settle(pilot, "7 Rivalry · ")

    assert snap_compare(still, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [SIZES[0], *slow(*((size,) for size in SIZES[1:]))])
def test_configure(still: MarketApp, scenario_text: str, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        text = scenario_text.replace("rounds = 12", "rounds = 0")
        screen = ConfigureScreen(text, "small.toml", Path("small.toml"), still)
        still.push_screen(screen)
        await settle(pilot, "✘ small.toml:4")

    assert snap_compare(still, terminal_size=size, run_before=before)


@looks
def test_compare(
    still: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int], theme: str, snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
        sessions = [play_small(), play_small(scenario_text.replace('"lcfa"', '"d-first"'), rounds=9)]
        still.push_screen(CompareScreen(sessions, still))
        await settle(pilot, "round 9")

    assert snap_compare(still, terminal_size=size, run_before=before)


def test_shock(still: MarketApp, play_small: Play, snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "Three services")  # the screen below, whose preview loads
        still.push_screen(InterventionDialog(play_small(), 5, 0))
        await settle(pilot, "Fork the run")

    assert snap_compare(still, terminal_size=(80, 24), run_before=before)
