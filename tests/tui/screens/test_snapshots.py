"""How the screens look: all at three sizes, and five at a fourth one, too, and in light colours.

After a wanted change: pytest --snapshot-update, and look at them.
"""

import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from itertools import product
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
sizes = pytest.mark.parametrize(
    "size", [(80, 24), *slow(((120, 40),), ((200, 60),))], ids=lambda size: "x".join(map(str, size))
)
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


def write_training(log: Path) -> None:
    """Write the files of a training that has ended, in which all numbers are formulas."""
    rows = ["episode,phase,reward,auc,reached,markup"]
    for episode in range(1, 41):
        auc = 0.89 - 0.3 / (episode + 3)
        rows.append(f"{episode},train,{auc - 0.1},{auc + 0.01 * (episode % 3 - 1)},0.67,{1 / episode}")
        if episode % 5 == 0:
            rows.append(f"{episode},evaluate,{auc - 0.09},{auc + 0.01},0.67,{1 / episode}")
    log.write_text("\n".join(rows) + "\n")
    log.with_suffix(".safetensors").touch()
    record = log.with_suffix(".training") / "record"
    record.mkdir(parents=True)
    plan = {"plan": {"episodes": 40}, "provenance": {"policy": "mahdrl", "scenario": "small", "backend": "surrogate"}}
    (record / "plan.json").write_text(json.dumps(plan))
    (record / "baselines.csv").write_text("policy,reward,auc,reached,markup\nhqfa,0.8,0.855,0.67,0\n")
    parts = [f"{kind}_{part}" for kind in ("bid", "dqi") for part in range(1, 6)]
    lines = [",".join(["episode,service,offers,served,markup", *parts])]
    for episode, service in product((5, 40), ("alpha", "beta", "gamma")):
        lines.append(f"{episode},{service},{2 + 1 / episode},0.9,0.02,0.1,0.1,0.1,0.2,0.5,0.1,0.1,0.2,0.4,0.2")
    (record / "preferences.csv").write_text("\n".join(lines) + "\n")


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


def watching(session: Session, *keys: str, shows: str, theme: str = DARK) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return what opens a run, presses keys, and waits for words."""

    async def before(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, MarketApp)
        app.theme = theme
        app.push_screen(MarketScreen(session, app))
        await pilot.pause()
        await pilot.press(*keys)
        await settle(pilot, shows)

    return before


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
    before = watching(play_small(), "home", "]", "]", "3", "down", shows="round 3/12", theme=theme)
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


@sizes
def test_the_order_book_of_a_client(
    still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare
) -> None:
    before = watching(play_small(), "home", "4", "b", "m", shows="Order book · client")
    assert snap_compare(still, terminal_size=size, run_before=before)


@sizes
@pytest.mark.parametrize("key", ["W", "B"])
def test_answers(still: MarketApp, play_small: Play, key: str, size: tuple[int, int], snap_compare: Compare) -> None:
    before = watching(play_small(), "home", "o", key, shows="one more core" if key == "B" else "for sure")
    assert snap_compare(still, terminal_size=size, run_before=before)


@sizes
def test_rivalry(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    """In the small terminal who outbid whom, in the large ones the summary."""
    before = watching(play_small(), "7", *("v" * (size[0] == 80)), shows="7 Rivalry · ")
    assert snap_compare(still, terminal_size=size, run_before=before)


@sizes
def test_configure(still: MarketApp, scenario_text: str, size: tuple[int, int], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        text = scenario_text.replace("rounds = 12", "rounds = 0")
        screen = ConfigureScreen(text, "small.toml", Path("small.toml"), still)
        still.push_screen(screen)
        await settle(pilot, "✘ small.toml:4")

    assert snap_compare(still, terminal_size=size, run_before=before)


@sizes
def test_training(still: MarketApp, size: tuple[int, int], snap_compare: Compare) -> None:
    log = Path("mine.csv")
    write_training(log)

    async def before(pilot: Pilot[None]) -> None:
        still.show_trainings([log])
        await settle(pilot, "after episode 40")

    assert snap_compare(still, terminal_size=size, run_before=before)


@sizes
def test_help(still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare) -> None:
    before = watching(play_small(), "4", "question_mark", shows="Why each client trained")
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


@sizes
def test_the_intervention_dialog(
    still: MarketApp, play_small: Play, size: tuple[int, int], snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "Three services")  # the screen below, whose preview loads
        still.push_screen(InterventionDialog(play_small(), 5, 0))
        await settle(pilot, "Fork the run")

    assert snap_compare(still, terminal_size=size, run_before=before)
