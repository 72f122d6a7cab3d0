"""The pace of a run that is started to be watched. Unhurried, a round takes a quarter of an hour here."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import pytest
from textual.pilot import Pilot

import tui.state.pace
from scenarios.logs.run_state import RunState
from support.screens import until
from tui.app import MarketApp
from tui.panels.status_line import StatusLine
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import StartRunDialog
from tui.state.pace import faster, to_watch
from tui.state.watched_run import Session

Play = Callable[..., Session]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui.state.pace, "TO_WATCH", 0.001)
    monkeypatch.setattr(tui.state.pace, "LONGEST", inf)


@asynccontextmanager
async def begun(app: MarketApp, small: Path, *keys: str) -> AsyncIterator[tuple[Pilot[None], list[Session]]]:
    """Run the small scenario by the dialog, in which some keys are pressed first."""
    app._scenario = str(small / "small.toml")
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog) and app.screen.query("#go"), "the dialog")
        await pilot.press(*keys, "enter")
        await until(pilot, lambda: isinstance(app.screen, MarketScreen | CompareScreen), "the runs")
        yield pilot, app.runs.sessions


def status(app: MarketApp) -> str:
    return str(app.screen.query_one(StatusLine).render()).split("\n")[0]


@pytest.mark.parametrize(("rounds", "speed"), [(1, 5), (12, 5), (300, 5), (301, 301 / 60), (6000, 100)])
def test_a_run_plays_at_five_rounds_a_second_and_faster_where_it_would_take_more_than_a_minute(
    rounds: int, speed: float
) -> None:
    assert to_watch(rounds) == speed
    assert rounds / to_watch(rounds) <= 60


@pytest.mark.parametrize("rounds", [12, 400, 6000])
def test_a_watched_run_becomes_faster_and_slower_from_any_speed(rounds: int) -> None:
    def value(speed: float | None) -> float:
        return inf if speed is None else speed

    speed = to_watch(rounds)
    assert value(faster(speed, -1)) < speed < value(faster(speed, 1))


async def test_the_status_says_how_fast_and_which_key_plays_at_full_speed(app: MarketApp, small: Path) -> None:
    # A run that lasts a minute is paused before it is over, and then its status is read, however slow the machine is.
    text = (small / "small.toml").read_text().replace("rounds = 12", "rounds = 300")
    (small / "small.toml").write_text(re.sub("target_accuracy = [0-9.]+", "target_accuracy = 1.0", text))
    async with begun(app, small) as (pilot, [session]):
        assert session.speed == 5
        await until(pilot, lambda: len(session.history) >= 2, "rounds")
        app.runs.send(session, "pause")
        await until(pilot, lambda: "5 rounds/s (F: full speed)" in status(app), "the status")
        app.runs.send(session, "quit")
        await until(pilot, lambda: session.over, "the end")
        await until(pilot, lambda: "F:" not in status(app), "a status without a key that does nothing")


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
async def test_the_key_plays_at_full_speed_and_later_runs_keep_the_speed_that_was_chosen(
    app: MarketApp, small: Path
) -> None:
    async with begun(app, small) as (pilot, [session]):
        await until(pilot, lambda: session.state is RunState.RUNNING, "the runner")
        assert not len(session.history)
        await pilot.press("F")
        await until(pilot, lambda: session.state is RunState.COMPLETE, "all rounds")
        assert app.settings.speed == inf
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog), "the dialog")
        await pilot.press("7", "enter")
        await until(pilot, lambda: app.runs.sessions[-1].state is RunState.COMPLETE, "a second run at full speed")
        assert len(app.runs.sessions) == 2


@pytest.mark.slow
async def test_a_speed_that_was_chosen_holds_for_one_run_and_for_several(app: MarketApp, small: Path) -> None:
    app.settings.speed = 2
    async with begun(app, small, *"0,1") as (_, sessions):
        assert [session.speed for session in sessions] == [2, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
async def test_runs_that_are_compared_play_at_full_speed(app: MarketApp, small: Path, play_small: Play) -> None:
    async with begun(app, small, *"0..1") as (pilot, sessions):
        await until(
            pilot, lambda: all(session.state is RunState.COMPLETE for session in sessions), "all rounds of both"
        )
        assert app.settings.speed is None  # nobody chose that
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog), "the dialog")
        await pilot.press("7", "enter")
        watched = app.runs.sessions[-1]
        await until(pilot, lambda: watched.state is RunState.RUNNING, "one that is watched")
        assert not len(watched.history)
        app.show_comparison([watched, play_small()])
        await until(pilot, lambda: watched.state is RunState.COMPLETE, "all its rounds")


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
async def test_rounds_that_are_there_come_at_once(small: Path, fake_runner: Callable[[str], tuple[str, ...]]) -> None:
    careful = fake_runner("careful")  # which keeps every round
    async with begun(MarketApp(out=small / "runs", folder=small, runner=careful), small) as (pilot, [session]):
        await pilot.press("space")
        await until(pilot, lambda: session.state is RunState.PAUSED, "the pause")
        for _ in range(3):
            played = len(session.history)
            await pilot.press("s")
            await until(pilot, lambda played=played: len(session.history) == played + 1, "a round")  # type: ignore[misc]
        played = len(session.history)
    async with begun(MarketApp(out=small / "runs", folder=small, runner=careful), small) as (pilot, [session]):
        await until(pilot, lambda: len(session.history) == played, "the rounds of the interrupted run")
        assert session.speed == 0.001
