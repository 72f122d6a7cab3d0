"""A folder of runs: the state of each, read cheaply, how long all will take, its league, and its names."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style

import tui.state.run_standing
from des.log_records import ServiceReport
from flmarket.analysis.results.setting import settings_of
from learning.statistics.intervals import mean_interval
from scenarios.build import Shelf
from scenarios.file.schema import Intervention
from scenarios.loader import load
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import RunReader
from scenarios.logs.run_state import RunState
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from support.runs import RECORDED
from support.screens import Play, painted, until, write_run
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.state.batch_folder import ORDERS, Place, RunLine, RunsFolder, grouped, leagues, ordered, run_directories
from tui.state.compared_runs import market_name, name_of
from tui.state.known_runs import recent_runs
from tui.state.run_standing import RunStanding, standing
from tui.widgets.batch_tables import LeagueChart
from tui.widgets.comparison import CompareTable
from tui.widgets.plot import Plot

LONG_AGO = 1_000_000_000


@pytest.fixture
def write(play_small: Play, tmp_path: Path) -> Callable[..., Path]:
    """``write("hqfa", 3, rounds=5)``: the directory of a run that was interrupted after round 5, long ago."""

    def write(policy: str, seed: int, **more: Any) -> Path:
        place = write_run(play_small(), tmp_path / "runs" / "small-0a0b0c0d" / policy / f"seed-{seed:04d}", **more)
        for path in place.iterdir():
            os.utime(path, (LONG_AGO, LONG_AGO))
        return place

    return write


@pytest.mark.usefixtures("just_now")
def test_the_state_of_each_run(write: Callable[..., Path], tmp_path: Path) -> None:
    write("complete", 0, status="complete")
    write("failed", 0, rounds=5, status="failed", error="policy 'x' failed\nto act in round 6")
    write("interrupted", 0, rounds=7)
    (write("damaged", 0, status="complete") / "events.csv").unlink()
    (write("unreadable", 0, status="complete") / "meta.json").write_text("[]")
    stopped = write("incomplete", 0, rounds=7)
    os.utime(stopped / "rounds.csv")  # just now
    begun = write("begun", 0, rounds=0)
    RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "waiting" / "seed-0000").announce()
    with RunDirectory(begun).locked():
        look = RunsFolder(tmp_path / "runs").look()
    found = {run.standing.policy: run.standing for run in look.runs}
    assert {policy: run.state for policy, run in found.items()} == {
        **dict(zip(found, found, strict=True)),
        "begun": "running",
        "damaged": "unreadable",
    }
    assert found["failed"].problem == "policy 'x' failed to act in round 6"
    assert "events.csv" in found["damaged"].problem
    assert "is damaged" in found["unreadable"].problem
    assert (found["interrupted"].round, found["begun"].round) == (7, 0)
    assert found["complete"].result == "1 of 3 targets"
    assert 0 < (found["complete"].accuracy or 0) < 100
    assert {run.rounds for run in look.runs} == {12}


def test_a_run_whose_process_is_killed_is_interrupted_at_once(write: Callable[..., Path], tmp_path: Path) -> None:
    place = write("hqfa", 0, rounds=5)
    folder = RunsFolder(tmp_path / "runs")
    with RunDirectory(place).locked():
        os.utime(place / "rounds.csv")
        assert [run.standing.state for run in folder.look().runs] == ["running"]
    assert [run.standing.state for run in folder.look().runs] == ["interrupted"]
    with RunDirectory(place).locked():  # another process resumes it
        (place / "run.log").write_text("start")
        assert [run.standing.state for run in folder.look().runs] == ["running"]
        RunDirectory(place).finish({**RECORDED, "status": "complete"})
    assert [run.standing.state for run in folder.look().runs] == ["complete"]


def test_half_written_tables_are_no_problem(write: Callable[..., Path]) -> None:
    place = write("hqfa", 0, rounds=3)
    table = place / "rounds.csv"
    content = table.read_bytes()
    for length in range(len(content), 0, -7):
        table.write_bytes(content[:length])
        found = standing(place)
        assert found.state == "incomplete"
        assert found.round <= 3
    table.write_text("what is this\n")
    assert standing(place).round == 0
    # A worker that died leaves its reason in the log.
    (place / "run.log").write_text("2026-01-01 00:00:00,000 ERROR failed: the process ended with status 9\n")
    for name in ("rounds.csv", "run.log"):
        os.utime(place / name, (LONG_AGO, LONG_AGO))
    died = standing(place)
    assert (died.state, died.problem) == ("interrupted", "the process ended with status 9")
    (place / "scenario.toml").unlink()
    assert standing(place).state == "unreadable"


def test_what_is_unchanged_is_read_once(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    class Counting(RunReader):
        def last(self) -> tuple[int, tuple[ServiceReport, ...]]:
            read.append(self._directory)
            return super().last()

    monkeypatch.setattr(tui.state.run_standing, "RunReader", Counting)
    for seed in range(4):
        write("hqfa", seed, status="complete")
    changing = write("hqfa", 9, rounds=5)
    folder = RunsFolder(tmp_path / "runs")
    folder.look()
    assert len(read) == 5
    read.clear()
    folder.look()
    assert read == []
    os.utime(changing / "rounds.csv")
    folder.look()
    assert read == [changing]


def test_runs_are_found_whichever_of_their_folders_is_named(write: Callable[..., Path], tmp_path: Path) -> None:
    places = [write("hqfa", 0), write("hqfa", 1), write("lcfa", 0)]
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / ".hidden" / "a" / "seed-0000").mkdir(parents=True)
    assert run_directories(tmp_path) == places
    assert run_directories(tmp_path / "runs") == places
    assert run_directories(tmp_path / "runs" / "small-0a0b0c0d") == places
    assert run_directories(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa") == places[:2]


def test_time_left_follows_the_pace_of_what_plays(write: Callable[..., Path], tmp_path: Path) -> None:
    place = write("hqfa", 0, rounds=4)
    waiting = [RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa" / f"seed-000{n}") for n in (1, 2)]
    for run in waiting:
        run.announce()
    whole = TABLES["rounds"].path(write("other", 0)).read_text()
    now = time.time()
    folder = RunsFolder(tmp_path / "runs", clock=lambda: now)
    with RunDirectory(place).locked():
        assert folder.look().left is None  # its files show no pace yet
        (place / "rounds.csv").write_text("".join(whole.splitlines(keepends=True)[: 1 + 3 * 10]))
        now += 3.0
        look = folder.look()
        one = next(run for run in look.runs if run.standing.path == place)
        assert (one.standing.round, one.rate, one.left) == (10, 2.0, 1.0)
        assert look.left == (2 + 12 + 12) / 2.0
        group = next(group for group in grouped(look.runs) if group.first.policy == "hqfa")
        assert group.left == look.left  # what waits counts there, too


def test_what_an_earlier_batch_did_not_begin_is_not_waited_for(write: Callable[..., Path], tmp_path: Path) -> None:
    write("hqfa", 0, status="complete")
    RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa" / "seed-0001").announce()
    now = time.time()
    folder = RunsFolder(tmp_path / "runs", clock=lambda: now)
    assert folder.look().states == {"complete": 1, "waiting": 1}
    now += 100
    look = folder.look()
    assert (look.states, look.abandoned) == ({"complete": 1}, 1)


def test_orders_and_groups(write: Callable[..., Path], tmp_path: Path) -> None:
    for seed, rounds, status in ((0, 12, "complete"), (1, 12, "complete"), (10, 3, "failed")):
        write("hqfa", seed, rounds=rounds, status=status)
    write("lcfa", 0, rounds=2)
    runs = RunsFolder(tmp_path / "runs").look().runs
    by = {order: [(run.standing.policy, run.standing.seed) for run in ordered(runs, order)] for order in ORDERS}
    assert by["scenario and policy"] == [("hqfa", "0"), ("hqfa", "1"), ("hqfa", "10"), ("lcfa", "0")]
    assert by["state"][0] == ("hqfa", "10")
    assert by["accuracy"][:2] == [("hqfa", "0"), ("hqfa", "1")]
    hqfa, lcfa = grouped(runs)
    assert hqfa.states == {"complete": 2, "failed": 1}
    assert hqfa.accuracy == runs[0].standing.accuracy
    assert (hqfa.met, hqfa.rounds, lcfa.rounds) == (1.0, (27, 36), (2, 12))
    assert (lcfa.accuracy, lcfa.met, lcfa.left) == (None, None, None)


FOLDER = Path("runs/small-00000000")


def run(policy: str, seed: int, accuracy: float, state: RunState = RunState.COMPLETE) -> RunLine:
    """A run of which ``accuracy`` is both the final one and, once it is complete, the AUC."""
    standing = RunStanding(FOLDER / policy / f"seed-{seed:04d}", state, 12, accuracy, services=3)
    return RunLine(standing, 20, auc=accuracy if state is RunState.COMPLETE else None)


def test_groups_are_in_the_order_of_their_means_not_of_their_best_runs() -> None:
    runs = [run("hqfa", 0, 95.0), run("hqfa", 1, 60.0), run("lcfa", 0, 80.0), run("lcfa", 1, 82.0)]
    assert [run.standing.policy for run in ordered(runs, "accuracy")] == ["hqfa", "lcfa", "lcfa", "hqfa"]
    assert [group.first.policy for group in grouped(runs, "accuracy")] == ["lcfa", "hqfa"]


def test_the_league_is_of_auc_not_of_the_round_in_which_services_left() -> None:
    early, late = run("early", 0, 95.0), run("late", 0, 96.0)  # which overshot its targets
    runs = [replace(early, auc=83.0), replace(late, auc=76.0)]
    assert [place.group.first.policy for place in leagues(runs)[FOLDER]] == ["early", "late"]
    assert [group.first.policy for group in grouped(runs, "AUC")] == ["early", "late"]


@pytest.fixture
def places() -> list[Place]:
    runs = [run("hqfa", seed, accuracy) for seed, accuracy in enumerate((80.0, 82.0, 87.0))]
    runs += [run("lcfa", seed, accuracy) for seed, accuracy in enumerate((90.0, 92.0))]
    runs += [run("lcfa", 2, 10.0, RunState.RUNNING), run("random", 0, 99.0, RunState.RUNNING)]
    return list(leagues(runs)[FOLDER])


def test_the_best_comes_first_and_only_complete_runs_count(places: list[Place]) -> None:
    lcfa, hqfa, random = places
    assert [place.group.first.policy for place in places] == ["lcfa", "hqfa", "random"]
    assert lcfa.interval.estimate == pytest.approx(91)
    assert not lcfa.interval.known  # of two seeds
    assert hqfa.interval == mean_interval([80, 82, 87])
    assert random.interval is None


async def test_it_is_drawn_on_one_axis(places: list[Place]) -> None:
    app = MarketApp()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = LeagueChart()
        await app.screen.mount(chart, before=0)
        chart.styles.height = "auto"
        for width in (80, 120):
            await pilot.resize_terminal(width, 24)
            chart.show({FOLDER: places}, FOLDER)
            await pilot.pause()
            head, lcfa, hqfa, random = painted(app).splitlines()[1:5]
            assert "small" in head
            axis = {label: head.index(label) for label in ("80", "90")}
            assert axis["80"] < hqfa.index("●") < axis["90"] <= lcfa.index("●")
            assert hqfa.count("━") > 10
            assert "━" not in lcfa
            assert "12 of 20 rounds played" in random
            assert ("[74.0, 92.0]" in hqfa) == (width == 120)
        # An axis of one run is that of its whole percentage points.
        chart.show({FOLDER: list(leagues([run("lcfa", 0, 61.2456)])[FOLDER])}, FOLDER)
        await pilot.pause()
        head = painted(app).splitlines()[1]
        assert re.search(r"mean +60\.\d +6[01]\.\d .* 6[12]\.\d", head)
        assert "interval" not in head  # one seed has none


async def test_a_league_without_room_for_all_says_how_much_more_there_is(places: list[Place]) -> None:
    app = MarketApp()
    folders = [FOLDER.with_name(f"small-{place:08d}") for place in range(5)]
    async with app.run_test(size=(120, 24)) as pilot:
        chart = LeagueChart()
        await app.screen.mount(chart, before=0)
        for height, last in ((5, "… 4 more scenarios"), (12, "… 2 more scenarios"), (17, "… 1 more scenario")):
            chart.styles.height = height + 2  # with its border
            chart.show(dict.fromkeys(folders, places), folders[0])
            await pilot.pause()
            lines = chart.render().plain.splitlines()
            assert len(lines) == height
            assert lines[-1] == last
        chart.styles.height = 5
        chart.show({FOLDER: places}, FOLDER)
        await pilot.pause()
        assert chart.render().plain.splitlines()[-1] == "… 2 more policies"
        chart.styles.height = 6
        await pilot.pause()
        assert "more" not in chart.render().plain


async def test_a_policy_has_one_colour_in_the_league_and_in_compare(
    app: MarketApp, play_small: Play, places: list[Place]
) -> None:
    sessions = [play_small(), play_small()]
    for session, policy in zip(sessions, ("lcfa", "hqfa"), strict=True):
        session.policy = policy
    async with app.run_test(size=(120, 40)) as pilot:
        chart = LeagueChart()
        await app.screen.mount(chart, before=0)
        chart.show({FOLDER: places}, FOLDER)
        await until(pilot, lambda: "●" in chart.render().plain, "the chart, which has its size by then")
        lines = {line.plain.split()[0]: line for line in chart.render().split() if "●" in line.plain}
        assert lines.keys() == {"hqfa", "lcfa"}
        for compared in (sessions, sessions[::-1]):
            app.push_screen(CompareScreen(compared, app))
            await pilot.pause(0.3)
            table = app.screen.query_one(CompareTable)
            styles = {curve.name: curve.style for curve in app.screen.query(Plot).first().curves if curve.sign}
            for policy, line in lines.items():
                color = line.get_style_at_offset(app.console, line.plain.index("●")).color
                row = [session.policy for session in compared].index(policy)
                assert (
                    Style.parse(styles[policy]).color == Style.parse(str(table.cell(row, "run").style)).color == color
                )


def test_a_folder_of_a_sweep_shows_its_values(tmp_path: Path) -> None:
    scenario = load("quickstart", ["training.backend=surrogate", "rounds=2", "sweep.services.digits.budget=[6, 7.5]"])
    for run in plan([scenario], ["lcfa", "random"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    found = RunsFolder(tmp_path).look().runs
    assert sorted(run.scenario for run in found) == [
        f"quickstart (services.digits.budget={budget})" for budget in (6, 6, 7.5, 7.5)
    ]
    one = RunsFolder(found[0].standing.path.parent.parent).look().runs[0]
    assert one.scenario == found[0].standing.folder


def test_points_are_told_apart_and_in_order_beside_a_scenario_without_their_group(tmp_path: Path) -> None:
    plain = ["training.backend=surrogate", "rounds=2"]
    group = 'clients.groups=[{name="phones", count=8, cores=1, data_size=[40, 80]}]'
    points = load("quickstart", [*plain, group, "sweep.clients.cores=[10, 1, 9, 2]"])
    for run in plan([points, load("quickstart", plain)], ["lcfa"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    names = [
        "quickstart (clients.cores=1)",
        *(f"quickstart (clients.cores={cores}, other clients.groups)" for cores in (1, 2, 9, 10)),
    ]
    runs = RunsFolder(tmp_path).look().runs
    assert [run.scenario for run in ordered(runs, "scenario and policy")] == names
    assert [run.apart for run in ordered(runs, "scenario and policy")][:2] == [
        "clients.cores=1",
        "clients.cores=1, other clients.groups",
    ]
    assert [place.group.runs[0].title for [place] in leagues(runs).values()] == names
    assert sorted(entry.name for entry in recent_runs(tmp_path)) == sorted(f"{name} · lcfa · seed 0" for name in names)
    settings = settings_of(map(RunDirectory, run_directories(tmp_path)))
    assert len({setting.label for setting in settings.values()}) == 5


def test_scenarios_that_only_hashes_tell_apart_have_them_beside_their_values_in_the_league_too(tmp_path: Path) -> None:
    plain = ["training.backend=surrogate", "rounds=2"]
    for group in ("phones", "laptops"):
        other = f'clients.groups=[{{name="{group}", count=8, data_size=[40, 80]}}]'
        for run in plan([load("quickstart", [*plain, other])], ["lcfa"], [0], tmp_path, Shelf()):
            execute(run, Shelf())
    runs = RunsFolder(tmp_path).look().runs
    folders = [run.standing.folder for run in runs]
    assert len(set(folders)) == 2
    assert [run.title for run in runs] == [f"{folder} (other clients.groups)" for folder in folders]
    assert [run.apart for run in runs] == [run.title for run in runs]


def test_a_folder_with_forks_shows_what_they_change(tmp_path: Path) -> None:
    market = load("quickstart", ["training.backend=surrogate", "rounds=2"])
    changes = [(Intervention(round=2, key="clients.cores", value=cores),) for cores in (2, 3)]
    forks = [market.model_copy(update={"interventions": change}) for change in changes]
    for run in plan([market, *forks], ["lcfa"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    assert sorted(run.scenario for run in RunsFolder(tmp_path).look().runs) == [
        "quickstart (clients.cores = 2 from round 2)",
        "quickstart (clients.cores = 3 from round 2)",
        "quickstart (original)",
    ]


def test_runs_that_are_compared_are_named_by_the_values(play_small: Play, scenario_text: str) -> None:
    """Until a run is complete, its scenario alone says which point it is."""
    other_text = scenario_text.replace("rounds = 12", "rounds = 11")
    assert other_text != scenario_text
    one, other = play_small(scenario_text), play_small(other_text)
    other.hash8 = "11111111"
    assert name_of(one, [one, other]) == "rounds=12"
    assert market_name(other, [one, other]) == "rounds=11"
    assert one.state is RunState.COMPLETE
