"""Screens of continuous markets, whose work outlasts rounds."""

from pathlib import Path

import pytest

from scenarios.loader import load
from scenarios.logs.run_state import RunState
from support.runs import played
from support.screens import until
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.widgets.comparison import DELTA, CompareTable


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four services that wait, buffer, or do neither; clients' speeds span two orders of magnitude."""
    changes = {"training.backend": "surrogate", "rounds": 12, "services.async.target_accuracy": 0.15}
    return played(load("stragglers", changes), tmp_path_factory.mktemp("stragglers")).path


async def test_compare_has_seconds_to_target(app: MarketApp, run: Path) -> None:
    async with app.run_test(size=(200, 48)) as pilot:
        sessions = [app.runs.open(run) for _ in range(2)]
        await until(pilot, lambda: all(session.state is RunState.COMPLETE for session in sessions))
        app.push_screen(screen := CompareScreen(sessions, app))
        await until(pilot, lambda: screen.query(CompareTable) and screen.query_one(CompareTable).count == 8)
        table = screen.query_one(CompareTable)
        met = sessions[0].history.exit_of(2, 12)
        assert met
        found = [table.cell(row, "rounds to target").plain for row in range(8)]
        assert found == ["never"] * 4 + [f"{2 * met} s"] * 2 + ["never"] * 2
        assert table.cell(5, DELTA + "rounds to target").plain == "+0 s"
