"""Screens and ``flmarket report`` show the same accuracy of the same runs: that on test images.

Services go by the one on validation images. Only the market screen shows it, by its name.
"""

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from textual.geometry import Size

import flmarket
from scenarios.logs.run_state import RunState
from support.scenarios import SMALL, TWO_SERVICES
from support.screens import text_of, until, watching
from tui.app import MarketApp
from tui.panels.curves import CurvesPanel
from tui.panels.rivalry import RivalryLines
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.state.batch_folder import RunGroup, RunLine
from tui.state.compared_runs import mean_series
from tui.state.known_runs import recent_runs
from tui.state.run_standing import standing
from tui.widgets.comparison import CompareTable
from tui.widgets.plot import Plot
from tui.widgets.preview import preview

SPLIT = SMALL.replace("[20]", "[200]").replace("budget = 3", "budget = 30") + "[training]\nvalidation = 0.3\n"
Played = tuple[flmarket.Results, pd.DataFrame]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Three seeds of two policies, trained on real digits; and the figures of their report."""
    folder = tmp_path_factory.mktemp("split")
    (folder / "small.toml").write_text(SPLIT)
    found = flmarket.run(folder / "small.toml", ["random", "lcfa"], 3, out=folder / "runs", workers=0, progress=False)
    last = found.rounds[found.rounds["round"] == 2]
    assert (last["accuracy"] - last["test_accuracy"]).abs().min() > 1e-4, "no test could tell the two apart"
    return found, found.summary()


@pytest.mark.slow
async def test_compare_screen_summary_and_report_agree(app: MarketApp, played: Played) -> None:
    async with app.run_test(size=(200, 48)) as pilot:
        sessions = [app.runs.open(path) for path in played[0].paths]
        await until(pilot, lambda: all(run.state is RunState.COMPLETE for run in sessions))
        app.push_screen(screen := CompareScreen(sessions, app))
        await pilot.pause()
        await until(pilot, lambda: screen.query_one(CompareTable).count == 2)
        table = screen.query_one(CompareTable)
        assert "test accuracy" in str(screen.query_one(Plot).border_title)
        for place, group in enumerate(screen.shown):
            policy = sessions[group.runs[0]].policy
            [final] = played[1].loc[(slice(None), policy, "one"), "final accuracy"]
            assert str(table.cell(place, "final accuracy")).startswith(f"{final:.2f} [")
            runs = [sessions[run] for run in group.runs]
            assert mean_series(runs, [2] * 3, "one", screen.metric)[1][-1] == pytest.approx(final / 100)
        await pilot.press("s")
        for place, session in enumerate(sessions):
            cell = str(table.cell(place, "final accuracy"))
            assert cell == f"{100 * session.history[2].services[0].test_accuracy:.2f}"
        app.push_screen(market := MarketScreen(sessions[0], app))
        await pilot.pause()
        await pilot.press("7")
        rows = text_of(market.query_one(RivalryLines)).splitlines()
        assert "test accuracy %" in rows[0]
        assert f"{100 * sessions[0].history[2].services[0].test_accuracy:.2f}" in rows[1].split()


@pytest.mark.parametrize(("validation", "word"), [("0.3", "validation accuracy"), ("0", "test accuracy")])
async def test_the_market_screen_names_the_accuracy(app: MarketApp, tmp_path: Path, validation: str, word: str) -> None:
    (tmp_path / "one.toml").write_text(SPLIT.replace("0.3", validation))
    [path] = flmarket.run(tmp_path / "one.toml", out=tmp_path / "runs", workers=0, progress=False).paths
    session = app.runs.open(path)
    async with watching(app, session) as (pilot, screen):
        await until(pilot, lambda: session.state is RunState.COMPLETE)
        await until(pilot, lambda: word in str(screen.query_one(CurvesPanel).border_title))
        row = session.history[2].services[0]
        assert f"{100 * row.accuracy:.1f} → " in screen.query_one(ServicesTable).cells(0)[3].plain


@pytest.mark.slow
async def test_no_screen_speaks_of_test_images_where_nothing_is_trained(app: MarketApp, tmp_path: Path) -> None:
    (tmp_path / "curves.toml").write_text('name = "curves"\n' + TWO_SERVICES)
    paths = flmarket.run(tmp_path / "curves.toml", ["lcfa", "hqfa"], out=tmp_path / "runs", progress=False).paths
    session, other = (app.runs.open(path) for path in paths)
    async with watching(app, session) as (pilot, screen):
        await until(pilot, lambda: session.state is other.state is RunState.COMPLETE)
        await until(
            pilot, lambda: "2 Curves · accuracy on fitted curves %, " in str(screen.query_one(CurvesPanel).border_title)
        )
        await pilot.press("7")
        lines = screen.query_one(RivalryLines)
        assert lines.render_line(0).text.split()[:5] == ["service", "target", "met", "accuracy", "%"]
        compared = CompareScreen([session, other], app)
        app.push_screen(compared)
        await pilot.pause()
        title = compared.query_one(Plot)
        await until(pilot, lambda: str(title.border_title).startswith("alpha: accuracy on fitted curves % ("))
    console = Console(width=100, record=True, file=io.StringIO())
    entry = next(entry for entry in recent_runs(tmp_path / "runs") if entry.path == paths[0])
    console.print(preview(entry, app, Size(60, 30)).words)
    assert "# service policy target accuracy % " in " ".join(console.export_text().split())


def test_a_folder_of_runs_shows_what_the_report_does(played: Played) -> None:
    for policy in ("random", "lcfa"):
        runs = [RunLine(standing(path), None) for path in played[0].paths if path.parent.name == policy]
        [final] = played[1].loc[(slice(None), policy, "market"), "final accuracy"]
        assert RunGroup(tuple(runs)).accuracy == pytest.approx(final, rel=1e-12)
