"""The batch screen: a folder that real processes of ``flmarket run --jobs`` fill, and are killed in."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from shutil import rmtree

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Select

from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read_runs
from learning.policy import POLICIES
from learning.statistics.measure import MARKET
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.run_options import RunOptions
from support.screens import (
    PATIENCE,
    Play,
    notes,
    painted,
    rendered,
    runner_of,
    screen_of,
    start_of,
    text_of,
    until,
    write_run,
)
from support.shell import CLI, flmarket
from tui.app import MarketApp
from tui.screens import following_files
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.following_files import AT_REST, INTERVAL, SHARE
from tui.screens.help import HelpScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import ChosenRuns, StartRunDialog
from tui.state.batch_folder import Look, RunsFolder, run_directories
from tui.state.runs import LiveBatch
from tui.widgets.batch_tables import BatchTable, LeagueChart
from tui.widgets.preview_pane import PreviewPane

BREAKS = """
from flmarket import Offer, Policy, policy


@policy("breaks")
class Breaks(Policy):
    def act(self, observation):
        if observation.round == 3:
            raise ZeroDivisionError("no luck in round 3")
        return Offer.none()
"""


def text(screen: Screen[None], where: str) -> str:
    return text_of(screen.query_one(where))


def states(screen: BatchScreen) -> dict[str, int]:
    return dict(screen.look.states) if screen.look else {}


async def batch(pilot: Pilot[None]) -> BatchScreen:
    screen = await screen_of(pilot, BatchScreen)
    await until(pilot, lambda: screen.look is not None)
    return screen


@pytest.fixture
def endless(small: Path, scenario_text: str) -> Path:
    """A scenario that takes a while, on the surrogate: its targets are out of reach."""
    content = scenario_text.replace("rounds = 12", "rounds = 30000")
    for target in ("0.5 #", "0.9\n", "0.95\n"):
        content = content.replace(f"target_accuracy = {target}", f"target_accuracy = 0.9999{target[-1]}")
    path = small / "endless.toml"
    path.write_text(content + '\n[training]\nbackend = "surrogate"\n')
    return path


@contextmanager
def running(scenario: Path, out: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real batch of four runs, two at a time."""
    command = [*CLI, "run", str(scenario), "--policy", "hqfa", "--policy", "random", "--seeds", "2", "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "--out", str(out), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_follows_a_batch_of_another_process_until_it_is_killed(endless: Path, small: Path) -> None:
    out = small / "runs"
    with running(endless, out) as process:
        app = MarketApp(out=out, folder=small)
        async with app.run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda: len(list(out.glob("*/*/seed-*"))) == 4)
            await pilot.press("b")
            screen = await batch(pilot)
            await until(pilot, lambda: states(screen) == {"running": 2, "waiting": 2})
            await until(pilot, lambda: sum(run.standing.round > 1200 for run in screen.look.runs) >= 2)
            await until(pilot, lambda: "left" in text(screen, "#batch-status"))
            assert "4 runs: … 2 waiting  ▶ 2 running" in text(screen, "#batch-status")
            for size in ((80, 24), (200, 60), (120, 36)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                table = text(screen, "#batch-table")
                for words in ("small", "hqfa", "random", "/30000", "▶ running", "… waiting"):
                    assert words in table
                assert ("━" in table) == (size[0] >= 110)

            await pilot.press("enter")  # live
            market = await screen_of(pilot, MarketScreen)
            await until(pilot, lambda: len(market.session.history) > 20 and market.session.state is RunState.RUNNING)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)

            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            await until(pilot, lambda: states(screen).get("interrupted") == 2)
            assert "running" not in states(screen)
            assert "■ interrupted" in text(screen, "#batch-table")
            await pilot.press("n")
            assert "continues it from its last checkpoint" in text(screen, "#batch-detail")


@pytest.mark.slow
async def test_a_whole_sweep_is_started_with_its_policies_and_seeds_and_is_what_the_shell_plays(
    small: Path, scenario_text: str
) -> None:
    out, file = small / "runs", small / "swept.toml"
    # Long enough for its bar to be seen, which is there once all have begun.
    long = re.sub(r"target_accuracy = [\d.]+", "target_accuracy = 1.0", scenario_text).replace("= 12 #", "= 1000 #")
    file.write_text(long + '[sweep]\n"clients.cores" = [1, 2]\n')
    app = MarketApp(out=out, folder=small)
    async with app.run_test(size=(120, 40)) as pilot:
        app.ask_and_run(file.read_text(), str(file))
        dialog = await screen_of(pilot, StartRunDialog)
        dialog.query_one("#backend", Select).value = "surrogate"
        await pilot.press("space", "down", "space", "down", "space", *"0..2")  # random and lcfa
        await until(pilot, lambda: "12 runs" in rendered(dialog, "#run-problem"))
        await pilot.press("enter")
        screen = await batch(pilot)
        assert app.runs.live == 0 or app.runs.live <= 12
        await until(pilot, lambda: "planning" in text(screen, "#batch-status") or screen.look.runs)
        await until(pilot, lambda: "batch of 12 runs" in text(screen, "#batch-status"))
        await until(pilot, lambda: re.search(r"━┄* +\d+%", text(screen, "#batch-status")))
        await until(pilot, lambda: states(screen) == {"complete": 12})
        await until(pilot, lambda: app.runs.live == 0)
        assert app.live_batch.problem == ""
        assert len(app.runs.batch.runs) == 12
    asked = ("run", str(file), "--backend", "surrogate", "--policy", "random", "--policy", "lcfa", "--seeds", "0..2")
    assert "0 to run, 12 complete" in flmarket(*asked, "--dry-run", "--out", str(out)).stdout


@pytest.mark.slow
async def test_a_batch_is_ended_and_started_again_and_there_is_one_at_a_time(endless: Path, small: Path) -> None:
    out = small / "runs"
    app = MarketApp(out=out, folder=small)
    scenario = parse(endless.read_text())

    def chosen(*policies: str) -> ChosenRuns:
        return ChosenRuns((), (), batch=LiveBatch(scenario, policies, [0, 1], RunOptions(out=out, jobs=2)))

    async with app.run_test(size=(120, 36)) as pilot:
        app._start_runs(chosen("hqfa", "random"))
        screen = await batch(pilot)
        await until(pilot, lambda: states(screen) == {"running": 2, "waiting": 2})
        assert app.runs.live == 4
        assert "End batch" in {found.binding.description for found in screen.active_bindings.values() if found.enabled}
        app._start_runs(chosen("lcfa"))
        await pilot.pause()
        assert notes(app) == ["A batch is being played; wait for its end, or end it with e on its screen."]
        await pilot.press("q")
        await until(pilot, lambda: "4 runs are still live" in painted(app))
        await pilot.press("n", "e")
        await until(pilot, lambda: app.live_batch.over)
        await until(pilot, lambda: "The batch was ended; started again, it continues." in painted(app))
        await until(pilot, lambda: states(screen).get("interrupted") == 2)
        assert app.runs.live == 0
        app._start_runs(chosen("no-such-policy"))
        await until(pilot, lambda: "unknown policy 'no-such-policy'" in painted(app))
        app._start_runs(chosen("hqfa", "random"))
        await batch(pilot)
        await until(pilot, lambda: states(app.screen).get("running") == 2)
        assert not states(app.screen).get("failed")


async def test_a_run_that_is_paused_here_is_paused_there_too(
    small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small / "runs" / "small-0a0b0c0d" / "hqfa" / "seed-0001"
    opened = play_small(rounds=3, state=RunState.PAUSED)
    write_run(opened, place)
    opened.directory = place
    monkeypatch.setattr(MarketApp, "sessions", [opened])
    app = MarketApp(batch=small / "runs", out=small / "runs", folder=small)
    with RunDirectory(place).locked():
        async with app.run_test(size=(120, 40)) as pilot:
            screen = await batch(pilot)
            assert states(screen) == {"paused": 1}
            await until(pilot, lambda: "paused, 3 of 12 rounds" in text(screen, "#preview"))
            assert "running" not in painted(app)


def is_removed(folder: Path) -> bool:
    """Remove a folder into which others may write meanwhile; return whether it is gone."""
    rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.mark.slow
async def test_runs_whose_folder_is_deleted_are_gone_on_every_screen(endless: Path, small: Path) -> None:
    out = small / "runs"
    with running(endless, out, "--seeds", "1"):  # all runs at once: any that waited would begin in a new folder
        app = MarketApp(out=out, folder=small)
        async with app.run_test(size=(160, 40)) as pilot:
            await until(pilot, lambda: len(list(out.glob("*/*/seed-*"))) == 2)
            await pilot.press("b")
            screen = await batch(pilot)
            await until(pilot, lambda: states(screen) == {"running": 2})
            await until(pilot, lambda: all(run.standing.round for run in screen.look.runs))
            await pilot.press("home", "space", "down", "space", "c")
            compared = await screen_of(pilot, CompareScreen)
            await until(pilot, lambda: all(one.state == "running" and one.history for one in compared.sessions))
            await until(pilot, lambda: is_removed(out))
            await until(pilot, lambda: {one.state for one in compared.sessions} == {"gone"})
            await until(pilot, lambda: "gone" in painted(app) and "running" not in painted(app))

            await pilot.press("escape")
            await until(pilot, lambda: states(screen) == {"gone": 2})
            assert "✘ 2 gone" in text(screen, "#batch-status")
            assert "left" not in text(screen, "#batch-status")
            assert text(screen, "#batch-table").count("✘ gone") == 2
            await pilot.press("enter")
            assert notes(app) == ["The directory of this run has been removed."]

            await pilot.press("escape")
            home = await screen_of(pilot, HomeScreen)
            home.query_one("#entries").highlighted = 1
            await until(pilot, lambda: text(home, "#entries").count("✘ gone") == 2)
            await until(pilot, lambda: "has been removed" in text(home, "#preview"))
            await pilot.press("enter")
            market = await screen_of(pilot, MarketScreen)
            await until(pilot, lambda: "✘ gone" in painted(app))
            assert not market.session.pace.rate()
            assert "running" not in painted(app)
            assert not re.search(r"\d( rounds)?/s", painted(app))


@pytest.mark.slow
async def test_a_run_of_the_app_whose_folder_is_deleted_is_gone_with_its_process(small: Path) -> None:
    out = small / "runs"
    app = MarketApp(out=out, folder=small)
    async with app.run_test(size=(120, 36)) as pilot:
        app.play([(start_of(small, speed=5.0), "small")])
        market = await screen_of(pilot, MarketScreen)
        await until(pilot, lambda: len(market.session.history) > 1)
        pid = runner_of(app, market.session)
        await until(pilot, lambda: is_removed(out))
        await until(pilot, lambda: market.session.state == "gone")
        await until(pilot, lambda: "✘ gone" in painted(app))
        await until(pilot, lambda: not Path(f"/proc/{pid}").exists())
        assert not app.runs.running()


@pytest.mark.slow
async def test_a_slow_folder_is_looked_at_by_one_thread_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help is opened and closed during a look that takes long, as on a network's disk."""
    monkeypatch.setattr(following_files, "SHARE", 0)  # else the next look would be put off by what the keys take
    look, at_once, most, slow = RunsFolder.look, [], [], threading.Event()

    def counted(folder: RunsFolder) -> Look:
        at_once.append(1)
        most.append(len(at_once))
        slow.wait(PATIENCE)
        at_once.pop()
        return look(folder)

    app = MarketApp(out=tmp_path, folder=tmp_path)
    async with app.run_test() as pilot:
        await pilot.press("b")
        screen = await batch(pilot)
        monkeypatch.setattr(RunsFolder, "look", counted)
        await until(pilot, lambda: bool(at_once))
        for _ in range(3):
            await pilot.press("f1")
            await screen_of(pilot, HelpScreen)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
        await pilot.pause(0.2)
        slow.set()
        looks = len(most)
        await until(pilot, lambda: len(most) > looks)  # and it goes on looking
    assert max(most) == 1


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds after which a screen has looked again, or will."""
    found: list[float] = []
    set_timer = BatchScreen.set_timer

    def noting(screen: BatchScreen, delay: float, callback: Callable[[], None] | None = None, **more: str) -> Timer:
        if callback == screen._look_again:
            found.append(delay)
        return set_timer(screen, delay, callback, **more)

    monkeypatch.setattr(BatchScreen, "set_timer", noting)
    return found


@pytest.mark.parametrize(
    ("slow", "soon"),
    [
        ({1}, [True, True, True]),  # it reads everything
        ({2}, [True, True, True]),  # the first that reads a complete run imports what leagues need
        ({1, 2}, [True, False, True]),  # a slow disk
    ],
)
async def test_only_looks_that_take_long_again_and_again_put_off_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float], slow: set[int], soon: list[bool]
) -> None:
    look, looks = RunsFolder.look, []

    def some_slow(folder: RunsFolder) -> Look:
        looks.append(1)
        time.sleep(0.3 if len(looks) in slow else 0)
        return look(folder)

    monkeypatch.setattr(RunsFolder, "look", some_slow)
    app = MarketApp(batch=tmp_path, out=tmp_path, folder=tmp_path)
    async with app.run_test() as pilot:
        screen = await batch(pilot)
        while len(pauses) < len(soon):
            screen._look_again()
            before = len(pauses)
            await until(pilot, lambda before=before: len(pauses) > before)
    assert [pause < 0.3 * SHARE for pause in pauses[: len(soon)]] == soon


async def test_where_nothing_is_new_it_looks_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setattr(following_files, "SHARE", 0)  # a look takes as long as it takes
    app = MarketApp(batch=tmp_path, out=tmp_path, folder=tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: AT_REST in pauses)
        before = len(pauses)
        RunDirectory(tmp_path / "small-0123abcd" / "hqfa" / "seed-0001").announce()
        await until(pilot, lambda: INTERVAL in pauses[before:])


@pytest.mark.slow
async def test_failures_with_their_line_groups_and_comparison(small: Path) -> None:
    out, plugin = small / "runs", small / "breaks.py"
    plugin.write_text(BREAKS)
    fast = ["--set", "training.backend=surrogate", "--rounds", "6", "--seeds", "2", "--jobs", "2", "--out", str(out)]
    done = flmarket(
        "run", str(small / "small.toml"), *fast, "--plugin", str(plugin), "--policy", "hqfa", "--policy", "breaks", "-q"
    )
    assert done.returncode == 1
    app = MarketApp(batch=out, out=out, folder=small)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await batch(pilot)
        assert states(screen) == {"complete": 2, "failed": 2}
        table = screen.query_one(BatchTable)
        await pilot.press("n")
        assert table.cursor == 1
        await pilot.press("N")
        assert table.cursor == 0
        await pilot.press("N")
        assert table.cursor == 1
        assert "no luck in round 3" in text(screen, "#batch-detail")
        assert "policy 'breaks'" in text(screen, "#batch-table")

        await pilot.press("s", "s", "s")
        assert screen.order == "state"
        assert [line.standing.state for line in table.lines] == ["failed", "failed", "complete", "complete"]
        await pilot.press("g")
        assert [line.first.policy for line in table.lines] == ["breaks", "hqfa"]
        assert "2 seeds" in text(screen, "#batch-table")
        table.cursor = 1
        await pilot.press("enter")
        assert [line.standing.policy for line in table.lines] == ["hqfa", "hqfa"]
        await pilot.press("escape")
        assert len(table.lines) == 2
        assert screen.groups
        await pilot.press("g", "c")
        assert "Mark at least two runs first (space)." in notes(app)
        await pilot.press("space", "down", "space", "c")
        compared = await screen_of(pilot, CompareScreen)
        assert [session.policy for session in compared.sessions] == ["hqfa", "hqfa"]
        await pilot.press("escape")
        assert app.screen is screen
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)


async def test_g_keeps_the_chosen_run_and_a_group_is_marked_and_compared(small: Path, play_small: Play) -> None:
    for policy, seed in product(("hqfa", "lcfa", "random"), (0, 1, 2)):
        write_run(play_small(rounds=3), small / "runs" / "small-0a0b0c0d" / policy / f"seed-{seed:04d}")
    app = MarketApp(batch=small / "runs", out=small / "runs", folder=small)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await batch(pilot)
        table = screen.query_one(BatchTable)
        chosen = table.lines[4].standing
        table.cursor = 4
        await pilot.press("g")
        assert table.chosen.key == chosen.path.parent
        await pilot.press("g")
        assert table.chosen.standing.path == chosen.path
        await pilot.press("g", "down", "g")  # of another group, the first run
        assert (table.chosen.standing.policy, table.chosen.standing.seed) == ("random", "0")
        await pilot.press("g", "enter")
        assert (table.chosen.standing.policy, table.chosen.standing.seed) == ("random", "0")
        await pilot.press("escape")
        assert table.chosen.first.policy == "random"

        await pilot.press("space")
        assert [str(table.cells(place)[0]) for place in range(3)] == [" ", " ", "✓"]
        await pilot.press("space")
        assert not screen.marked
        await pilot.press("space", "g", "space", "g")  # one of its runs is not marked any more
        assert [str(table.cells(place)[0]) for place in range(3)] == [" ", " ", "∙"]
        await pilot.press("space", "up", "space", "c")
        compared = await screen_of(pilot, CompareScreen)
        assert len(compared.sessions) == 6
        await until(pilot, lambda: all(session.policy for session in compared.sessions))
        assert [session.policy for session in compared.sessions] == ["lcfa"] * 3 + ["random"] * 3
        assert not notes(app)


async def test_the_league_has_the_rows_that_the_runs_leave(small: Path, play_small: Play) -> None:
    for folder, policy in product(range(3), POLICIES.names()[:10]):
        write_run(play_small(rounds=3), small / "runs" / f"small-0000000{folder}" / policy / "seed-0000")
    app = MarketApp(batch=small / "runs", out=small / "runs", folder=small)
    async with app.run_test(size=(200, 60)) as pilot:
        screen = await batch(pilot)
        table, league = screen.query_one(BatchTable), screen.query_one(LeagueChart)
        await until(pilot, lambda: 20 < league.size.height < 33)  # the runs have a row each
        await pilot.press("g", "enter")
        await until(pilot, lambda: league.size.height == 33)
        assert text(screen, "LeagueChart").count("0 of 1") == 30
        for width, height in ((160, 48), (120, 40), (80, 24)):
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda rows=height: screen.size.height == rows)
            assert table.size.height >= 2
            pane = screen.query_one(PreviewPane)
            shown = [widget for widget in (table, league, pane) if widget.display]
            assert all(screen.query_one("#batch").region.contains_region(widget.region) for widget in shown)


@pytest.mark.parametrize(
    ("third", "shown"),
    [
        ("small", ("  services.alpha.budget=7 ", "  services.alpha.budget=8 ")),
        ("other", ("  small (services.alpha.budg", "  other ")),
    ],
)
async def test_where_all_scenarios_have_one_name_the_room_is_for_what_tells_them_apart(
    small: Path, play_small: Play, third: str, shown: tuple[str, str]
) -> None:
    for folder, budget in (("small-00000001", 6), ("small-00000002", 7), (f"{third}-00000003", 8)):
        scenario = write_run(play_small(), small / "runs" / folder / "hqfa" / "seed-0001") / "scenario.toml"
        scenario.write_text(re.sub(r"budget = [0-9.]+", f"budget = {budget}", scenario.read_text(), count=1))
    app = MarketApp(batch=small / "runs", out=small / "runs", folder=small)
    async with app.run_test(size=(120, 40)) as pilot:
        await batch(pilot)
        await until(pilot, lambda: all(words in painted(app) for words in shown))


@pytest.mark.slow
async def test_the_best_policy_of_a_batch_is_found_in_three_keys_from_home(small: Path) -> None:
    out, policies = small / "runs", ("hqfa", "lcfa", "random")
    named = [word for policy in policies for word in ("--policy", policy)]
    fast = ("--backend", "surrogate", "--rounds", "6", "--seeds", "3", "--jobs", "2", "--out", str(out), "-q")
    assert flmarket("run", str(small / "small.toml"), *named, *fast).returncode == 0
    report = make_report(read_runs(map(RunDirectory, run_directories(out))))
    means = {
        row.policy: row.interval.estimate
        for row in report.estimates
        if (row.service, row.measure.name) == (MARKET, "AUC")
    }
    assert set(means) == set(policies)
    app = MarketApp(out=out, folder=small)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None))
        await pilot.press("b", "g", "s")
        screen = await batch(pilot)
        found = [line.first.policy for line in screen.query_one(BatchTable).lines]
        assert found == sorted(policies, key=lambda policy: -means[policy])
        league = re.findall(r"(\w+) +3 of 3", text(screen, "LeagueChart"))  # which is there after the first key
        assert league == found


@pytest.mark.slow
async def test_the_way_back_leads_to_the_batch_and_from_home_to_the_same_folder(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    assert flmarket("run", str(small / "small.toml"), "--out", str(folder), "-q").returncode == 0
    app = MarketApp(batch=folder, out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await batch(pilot)
        await until(pilot, lambda: screen.query_one(BatchTable).lines)
        await pilot.press("enter")
        await screen_of(pilot, MarketScreen)
        await pilot.press("escape")
        assert app.screen is screen
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("b")
        assert (await batch(pilot)).folder == folder


@pytest.mark.usefixtures("just_now")
async def test_every_key_has_a_command_in_the_palette(small: Path) -> None:
    for seed in (0, 1):
        RunDirectory(small / "runs" / "small-0a0b0c0d" / "hqfa" / f"seed-{seed:04d}").announce()
    app = MarketApp(batch=small / "runs", out=small / "runs", folder=small)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await batch(pilot)
        offered = {command.title for command in app.get_system_commands(screen)}
        assert offered >= {"Open", "Sort", "Group seeds", "Next problem", "Mark", "Compare", "Back", "Watch all runs"}
        assert states(screen) == {"waiting": 2}
        await pilot.press("enter")
        assert notes(app) == ["This run has not begun; it opens once it has."]
        await pilot.press("n", "space")
        assert notes(app)[1:] == [
            "No run has failed or been interrupted.",
            "Only runs that have begun and are there can be marked.",
        ]


async def test_a_folder_without_runs_and_one_that_goes_away(small: Path) -> None:
    out = small / "runs"
    app = MarketApp(out=out, folder=small)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None))
        await pilot.press("b")
        screen = await screen_of(pilot, BatchScreen)
        await until(pilot, lambda: "cannot be read: No such file or directory" in text(screen, "#batch-status"))
        out.mkdir()
        await until(pilot, lambda: "no run yet; runs are shown as they begin" in text(screen, "#batch-status"))
        await pilot.press("enter", "g", "s", "n", "c", "g")
        place = out / "small-0a0b0c0d" / "hqfa" / "seed-0000"
        place.mkdir(parents=True)
        (place / "scenario.toml").write_text("rounds = 'ha")
        (place / "meta.json").write_text(json.dumps({"status": "complete"})[:-4])
        (place / "rounds.csv").write_bytes(b"\xff\xfe,,\n1")
        await until(pilot, lambda: "✘ unreadable" in text(screen, "#batch-table"))
        assert "meta.json: is damaged" in text(screen, "#batch-detail")
        await pilot.resize_terminal(140, 36)
        await until(pilot, lambda: "meta.json: is damaged" in text(screen, "#batch-table"), "the reason, not the path")
