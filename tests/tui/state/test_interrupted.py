"""Interrupted runs: the app resumes them, with all rounds that they had, or starts them over."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, SelectionList, Static

from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.steering import Start
from support.screens import play_headlessly, start_of, until
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog, StartRunDialog
from tui.state.watched_run import Session
from tui.widgets.tick_boxes import Tick

Runner = Callable[[str], tuple[str, ...]]


async def interrupted(small: Path, runner: tuple[str, ...], rounds: int, policy: str | None = None) -> Path:
    """Play some rounds, kill the runner, and return the directory that it leaves."""
    app = MarketApp(out=small / "runs", folder=small, runner=runner)
    async with app.run_test(size=(120, 40)) as pilot:
        session = app.runs.start(start_of(small, paused=True, policy=policy), "small")
        pid = app.runs._feeds[session].pid  # type: ignore[attr-defined]
        await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
        for n in range(1, rounds + 1):
            app.runs.send(session, "step")
            await until(pilot, lambda n=n: len(session.history) == n, "a round")  # type: ignore[misc]
        assert session.directory is not None
        # Its round stands in the files, which the screen follows, before the checkpoint after it does.
        checkpoint = session.directory / f"checkpoint/{rounds:08d}.json"
        await until(pilot, checkpoint.exists, "the checkpoint")
        os.kill(pid, signal.SIGKILL)
        await until(pilot, lambda: session.state is RunState.FAILED, "the failure")
    assert RunDirectory(session.directory).state is RunState.INCOMPLETE
    return session.directory


def notes(app: MarketApp) -> str:
    return " ".join(note.message for note in app._notifications)


@pytest.mark.slow
async def test_an_interrupted_run_resumes_where_it_stopped_and_the_user_is_notified(
    small: Path, fake_runner: Runner
) -> None:
    directory = await interrupted(small, fake_runner("careful"), 5)
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog) and app.screen.query("#go"), "the dialog")
        await until(pilot, lambda: str(app.screen.query_one("#go", Button).label) == "Resume", "the run that is there")
        assert "An interrupted run exists; it resumes where it stopped." in str(
            app.screen.query_one(".problem", Static).render()
        )
        app.screen.query_one("#paused", Tick).value = True
        app.screen.query_one("#go", Button).press()
        await until(pilot, lambda: isinstance(app.screen, MarketScreen), "the market")
        screen = app.screen
        assert isinstance(screen, MarketScreen)
        session = screen.session
        await until(pilot, lambda: "The run resumes from its last checkpoint." in notes(app), "the notification")
        assert "To begin again at round 1, run it with “start over” ticked." in notes(app)
        await until(pilot, lambda: screen.head.round == 5, "the rounds that were played before")
        await until(pilot, lambda: session.state is RunState.PAUSED, "the pause")
        await pilot.press("space")
        await until(pilot, lambda: session.state is RunState.COMPLETE, "the end")
        assert [logged.number for logged in session.history] == list(range(1, 13))
    assert session.directory == directory
    assert "continue after round 5" in (directory / "run.log").read_text()
    # Screen and files hold what a run that nothing interrupted gives.
    again = small / "again"
    elsewhere = MarketApp(out=again, folder=small, runner=fake_runner("careful"))
    async with elsewhere.run_test() as pilot:
        whole = elsewhere.runs.start(replace(start_of(small), out=str(again)), "small")
        await until(pilot, lambda: whole.state is RunState.COMPLETE, "the end")
    assert [logged.text for logged in session.history] == [logged.text for logged in whole.history]
    for name in ("rounds.csv", "offers.csv", "events.csv"):
        assert (directory / name).read_bytes() == (again / directory.relative_to(small / "runs") / name).read_bytes()


@pytest.mark.slow
async def test_an_interrupted_run_is_started_over_where_that_is_ticked(small: Path, fake_runner: Runner) -> None:
    directory = await interrupted(small, fake_runner("careful"), 3)
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog) and app.screen.query("#go"), "the dialog")
        await until(pilot, lambda: app.screen.query_one("#fresh").display, "the run that is there")
        app.screen.query_one("#fresh", Tick).value = True
        await pilot.pause()
        assert "An interrupted run exists; it starts over." in str(app.screen.query_one(".problem", Static).render())
        app.screen.query_one("#go", Button).press()
        await until(pilot, lambda: isinstance(app.screen, MarketScreen), "the market")
        screen = app.screen
        assert isinstance(screen, MarketScreen)
        await until(pilot, lambda: screen.session.state is RunState.COMPLETE, "the end")
        assert not notes(app)
    assert "continue after round" not in (directory / "run.log").read_text()


@pytest.mark.slow
async def test_an_interrupted_run_resumes_for_a_comparison_too(small: Path, fake_runner: Runner) -> None:
    directory = await interrupted(small, fake_runner("careful"), 2, policy="hqfa")
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(120, 40)) as pilot:
        session = app.runs.start(start_of(small), "small")
        app.push_screen(MarketScreen(session, app))
        await until(pilot, lambda: session.state is RunState.COMPLETE, "the run")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PickRunsDialog), "the dialog")
        app.screen.query_one(SelectionList).select("policy:hqfa")
        app.screen.query_one("#go", Button).press()
        await until(pilot, lambda: isinstance(app.screen, CompareScreen), "the comparison")
        assert isinstance(app.screen, CompareScreen)
        other = app.screen.sessions[1]
        await until(pilot, lambda: "The run resumes from its last checkpoint." in notes(app), "the notification")
        await until(pilot, lambda: other.state is RunState.COMPLETE, "the other run")
        assert len(other.history) == 12
    assert other.directory == directory
    assert "continue after round 2" in (directory / "run.log").read_text()


@pytest.mark.slow
async def test_a_run_that_failed_and_was_resumed_is_opened_as_complete(small: Path, fake_runner: Runner) -> None:
    """Whether this app or another process has resumed it."""
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(160, 40)) as pilot:
        failed = await killed(app, pilot, small)
        directory = failed.directory
        assert directory is not None
        resumed = app.runs.start(start_of(small), "small")
        assert resumed is not failed
        await until(pilot, lambda: resumed.state is RunState.COMPLETE, "the end")
        await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
        await pilot.press("f5", "slash", *"targets", "enter")
        await until(pilot, lambda: app.home.chosen is not None, "the run")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, MarketScreen), "the market")
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.session is resumed
        await pilot.press("escape")

        start = replace(start_of(small), fresh=True)
        again = await killed(app, pilot, small, start)
        assert app.runs.open(directory) is again  # it shows what is there
        play_headlessly(start_of(small), fake_runner("careful"))
        assert RunDirectory(directory).state is RunState.COMPLETE
        opened = app.runs.open(directory)
        assert again not in app.runs.sessions
        await until(pilot, lambda: opened.state is RunState.COMPLETE, "what the directory holds")
        assert len(opened.history) == 12


async def killed(app: MarketApp, pilot: Pilot[None], small: Path, start: Start | None = None) -> Session:
    """Play two rounds of a run and kill its process."""
    session = app.runs.start(replace(start or start_of(small), paused=True), "small")
    await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
    for n in (1, 2):
        app.runs.send(session, "step")
        await until(pilot, lambda n=n: len(session.history) == n, "a round")  # type: ignore[misc]
    os.kill(app.runs._feeds[session].pid, signal.SIGKILL)  # type: ignore[attr-defined]
    await until(pilot, lambda: session.state is RunState.FAILED, "the failure")
    return session
