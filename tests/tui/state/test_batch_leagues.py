"""The league of a folder: policies by the mean of their complete runs, with the intervals of reports."""

import re
from pathlib import Path

import pytest

from learning.statistics.intervals import mean_interval
from scenarios.logs.run_state import RunState
from support.screens import painted
from tui.app import MarketApp
from tui.state.batch_folder import Place, RunLine, leagues
from tui.state.run_standing import RunStanding
from tui.widgets.batch_tables import LeagueChart

FOLDER = Path("runs/small-00000000")


def run(policy: str, seed: int, accuracy: float, state: RunState = RunState.COMPLETE) -> RunLine:
    return RunLine(RunStanding(FOLDER / policy / f"seed-{seed:04d}", state, 12, accuracy, services=3), 20)


@pytest.fixture
def places() -> list[Place]:
    runs = [run("hqfa", seed, accuracy) for seed, accuracy in enumerate((80.0, 82.0, 87.0))]
    runs += [run("lcfa", seed, accuracy) for seed, accuracy in enumerate((90.0, 92.0))]
    runs += [run("lcfa", 2, 10.0, RunState.RUNNING), run("random", 0, 99.0, RunState.RUNNING)]
    return list(leagues(runs)[FOLDER])


def test_the_best_comes_first_and_only_complete_runs_count(places: list[Place]) -> None:
    lcfa, hqfa, random = places
    assert [place.group.first.policy for place in places] == ["lcfa", "hqfa", "random"]
    assert lcfa.interval is not None
    assert lcfa.interval.estimate == pytest.approx(91)
    assert not lcfa.interval.known  # of two seeds
    assert hqfa.interval == mean_interval([80, 82, 87])
    assert random.interval is None


@pytest.mark.parametrize("width", [80, 120])
async def test_it_is_drawn_on_one_axis(places: list[Place], width: int) -> None:
    app = MarketApp()
    async with app.run_test(size=(width, 24)) as pilot:
        chart = LeagueChart()
        await app.screen.mount(chart, before=0)
        chart.styles.height = "auto"
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


async def test_an_axis_of_one_run_is_that_of_its_whole_percentage_points() -> None:
    app = MarketApp()
    async with app.run_test(size=(120, 24)) as pilot:
        chart = LeagueChart()
        await app.screen.mount(chart, before=0)
        chart.styles.height = "auto"
        chart.show({FOLDER: list(leagues([run("lcfa", 0, 61.2456)])[FOLDER])}, FOLDER)
        await pilot.pause()
        head = painted(app).splitlines()[1]
    assert re.search(r"mean +60\.\d +6[01]\.\d .* 6[12]\.\d", head)
    assert "interval" not in head  # one seed has none
