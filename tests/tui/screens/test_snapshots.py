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

from scenarios.logs.run_state import RunState
from support.screens import Play
from support.shell import flmarket
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen
from tui.state import catalogue

DARK, LIGHT = "textual-dark", "textual-light"
STEADY = 4
"""Looks, a pause apart, at which a picture must be the same before it is taken."""
PAUSE = 0.15
"""Seconds between two looks: longer than screens put a redraw off (``tui.style.redraw``)."""
PATIENCE = 60.0
Compare = Callable[..., bool]


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
    monkeypatch.setattr(catalogue, "builtins", list)
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


Opening = Callable[[MarketApp, Play, Pilot[None]], Awaitable[str]]
"""Opens a screen; what it returns is on it once all is there."""


def market(*keys: str, shows: str) -> Opening:
    """A run on the market screen, after some keys."""

    async def opening(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
        app.push_screen(MarketScreen(play(), app))
        await pilot.pause()
        await pilot.press(*keys)
        return shows

    return opening


async def home(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    return "Three services, eight clients."


async def run_dialog(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    await settle(pilot, await home(app, play, pilot))  # the screen below, whose preview loads
    app.ask_and_run((app.folder / "small.toml").read_text(), "small.toml")
    return "as configured: each service uses its own"


async def batch(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    app.show_batch(app.out)
    return "interrupted"


async def compare(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    other = (app.folder / "small.toml").read_text().replace('"lcfa"', '"d-first"')
    app.push_screen(CompareScreen([play(), play(other, rounds=9)], app))
    return "round 9"


async def compare_means(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    """Of three policies, one of which has other seeds."""
    text, sessions = (app.folder / "small.toml").read_text(), []
    for policy, seeds in (("random", (0, 1, 2)), ("d-first", (1, 2, 3)), ("lcfa", (0, 1, 2))):
        for seed in seeds:
            sessions.append(play(text.replace('"random"', f'"{policy}"'), seed=seed))
            sessions[-1].policy = policy
    app.push_screen(CompareScreen(sessions, app))
    await pilot.pause()
    await pilot.press("tab", "tab")
    return "gamma: "


async def compare_fork(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    text = (app.folder / "small.toml").read_text()
    change = '[[interventions]]\nround = 4\nkey = "services.gamma.budget"\nvalue = 2\n'
    fork, original = play(text + change), play(text, rounds=3, state=RunState.PAUSED)
    fork.hash8 = "11111111"
    app.push_screen(CompareScreen([fork, original], app))
    return "All the same so far"


async def events(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    screen = MarketScreen(play(), app)
    app.push_screen(screen)
    await pilot.pause()
    await pilot.press("home")
    screen.head.event = 24
    await pilot.press("e")
    return "event 25/"


async def rivalry(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    """In the small terminal who outbid whom, in the large ones the summary."""
    return await market("7", *("v" * (app.size.width == 80)), shows="7 Rivalry · ")(app, play, pilot)


async def configure(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    text = (app.folder / "small.toml").read_text().replace("rounds = 12", "rounds = 0")
    app.push_screen(ConfigureScreen(text, "small.toml", Path("small.toml"), app))
    return "✘ small.toml:4"


async def training(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    log = Path("mine.csv")
    write_training(log)
    app.show_trainings([log])
    return "after episode 40"


async def intervention(app: MarketApp, play: Play, pilot: Pilot[None]) -> str:
    await settle(pilot, await home(app, play, pilot))
    app.push_screen(InterventionDialog(play(), 5, 1))
    return "Fork the run"


IN_ALL_LOOKS: dict[str, Opening] = {
    "home": home,
    "run_dialog": run_dialog,
    "batch": batch,
    "market": market("home", "]", "]", "3", "down", shows="round 3/12"),
    "compare": compare,
}
AT_ALL_SIZES: dict[str, Opening] = {
    "order_book_of_a_client": market("home", "4", "b", "m", shows="Order book · client"),
    "answer_why": market("home", "o", "W", shows="for sure"),
    "answer_best": market("home", "o", "B", shows="one more core"),
    "rivalry": rivalry,
    "configure": configure,
    "training": training,
    "compare_means": compare_means,
    "compare_fork": compare_fork,
    "help": market("4", "question_mark", shows="Why each client trained"),
    "intervention": intervention,
}
SMALL, LARGE = (80, 24), (160, 48)
SLOW = [((120, 40), DARK), ((200, 60), DARK)]
LOOKS = [
    *((name, size, DARK) for name in IN_ALL_LOOKS for size in (SMALL, LARGE)),
    *((name, SMALL, DARK) for name in AT_ALL_SIZES),
    ("events", LARGE, DARK),
    *slow(
        *((name, *look) for name in IN_ALL_LOOKS for look in (*SLOW, ((120, 40), LIGHT))),
        *((name, *look) for name in AT_ALL_SIZES for look in SLOW),
    ),
]


@pytest.mark.parametrize(
    ("name", "size", "theme"), LOOKS, ids=lambda it: "x".join(map(str, it)) if isinstance(it, tuple) else it
)
def test_screens(
    still: MarketApp, play_small: Play, name: str, size: tuple[int, int], theme: str, snap_compare: Compare
) -> None:
    async def before(pilot: Pilot[None]) -> None:
        still.theme = theme
        opening = (IN_ALL_LOOKS | AT_ALL_SIZES | {"events": events})[name]
        await settle(pilot, await opening(still, play_small, pilot))

    assert snap_compare(still, terminal_size=size, run_before=before)
