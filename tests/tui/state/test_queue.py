"""Which runs get a process, never more than cores, none twice; and interrupted ones, which resume or start over."""

import os
import signal
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, SelectionList

from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.processes import Messages, Process
from scenarios.running.steering import Start
from support.screens import PATIENCE, Runner, notes, play_headlessly, rendered, runner_of, screen_of, start_of, until
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.dialog import Tick
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog, StartRunDialog
from tui.state.runs import Runs
from tui.state.watched_run import Session

NEVER = 0.0001
"""Rounds per second of a run that plays, and is not over before the test lets it be."""


def processes(runs: Runs) -> int:
    return len(runs._processes())


@pytest.mark.slow
async def test_runs_wait_for_a_core_and_begin_when_one_ends(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        app.runs.most = 2
        sessions = [app.runs.start(start_of(small, seed=seed, speed=NEVER), f"seed {seed}") for seed in range(5)]
        assert [session.state for session in sessions[2:]] == [RunState.WAITING] * 3
        assert app.runs.running() == sessions  # quitting would stop them all
        for session in sessions:
            app.runs.play_at(session, None)
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, processes(app.runs))
            return all(session.state is RunState.COMPLETE for session in sessions)

        await until(pilot, done, "the end of all runs")
        assert 1 <= most <= 2
        assert [session.seed for session in sessions] == [0, 1, 2, 3, 4]


@pytest.mark.slow
async def test_a_run_that_waits_can_be_held_and_released(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        app.runs.most = 1
        first = app.runs.start(start_of(small, paused=True, speed=NEVER), "first")
        await until(pilot, lambda: first.state is RunState.PAUSED, "the runner")
        # One that is to start paused waits for its process, too.
        second = app.runs.start(start_of(small, seed=1, paused=True), "second")
        assert second.state is RunState.PAUSED
        assert processes(app.runs) == 1
        app.runs.send(second, "resume")  # the first is paused, and takes no core
        await until(pilot, lambda: second.state is RunState.COMPLETE, "the second")
        app.runs.send(first, "resume")
        third = app.runs.start(start_of(small, seed=2), "third")
        assert third.state is RunState.WAITING
        app.runs.send(third, "pause")
        assert third.state is RunState.PAUSED
        app.runs.play_at(first, None)
        await until(pilot, lambda: first.state is RunState.COMPLETE, "the first")
        await pilot.pause(0.2)
        assert (third.state, len(third.history)) == (RunState.PAUSED, 0)
        app.runs.send(third, "resume")
        await until(pilot, lambda: third.state is RunState.COMPLETE, "the third")


@pytest.mark.slow
async def test_a_fork_does_not_wait(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        app.runs.most = 1
        session = app.runs.start(start_of(small, speed=2), "small")
        await until(pilot, lambda: len(session.history) >= 2, "two rounds")
        intervention = '[[interventions]]\nround = 2\nkey = "clients.offline"\nvalue = [1]\n'
        fork = app.runs.fork(session, start_of(small).scenario + intervention, 2, paused=False)
        await until(pilot, lambda: len(fork.history) >= 2, "the fork")


async def test_quitting_forgets_the_runs_that_wait(app: MarketApp, small: Path) -> None:
    async with app.run_test() as pilot:
        app.runs.most = 1
        sessions = [app.runs.start(start_of(small, seed=seed, speed=NEVER), f"seed {seed}") for seed in range(3)]
        await until(pilot, lambda: sessions[0].state is RunState.RUNNING, "the runner")
    assert [len(session.history) for session in sessions[1:]] == [0, 0]


@pytest.mark.slow
async def test_a_run_is_the_same_however_its_scenario_is_written(app: MarketApp, small: Path) -> None:
    """A replay has the scenario with all defaults written out."""
    async with app.run_test() as pilot:
        session = app.runs.start(start_of(small, policy="hqfa", paused=True), "small")
        await until(pilot, lambda: session.directory is not None, "the runner")
        assert session.directory is not None
        written = (session.directory / "scenario.toml").read_text()
        # In the directory, the services have the policy; the dialog that compares starts from any run's scenario.
        again = start_of(small)
        assert app.runs.start(replace(again, scenario=written, policy="hqfa"), "again") is session
        assert (
            app.runs.start(replace(again, scenario=written, policy="hqfa", seed=1, paused=True), "seed") is not session
        )
        assert app.runs.start(replace(again, scenario=written, paused=True), "as configured") is not session


@pytest.mark.slow
async def test_a_run_of_another_program_is_opened_not_started(app: MarketApp, small: Path, fake_runner: Runner) -> None:
    start = start_of(small, paused=True)
    messages: Messages = SimpleQueue()
    with Process(fake_runner("formula")) as other:
        other.listen(messages)
        other.send("watch", **asdict(start), plugins=[])
        while (message := messages.get(timeout=PATIENCE)[1]) and message["type"] != "begun":
            pass
        (place,) = (small / "runs").glob("*/*/seed-0000")
        assert RunDirectory(place).being_played()
        async with app.run_test() as pilot:
            session = app.runs.start(start_of(small), "small")
            assert not app.runs.steerable(session)
            assert processes(app.runs) == 0
            other.send("step")
            await until(pilot, lambda: len(session.history) == 1, "a round of the other program")
            assert app.runs.start(start_of(small), "again") is session
            app.ask_and_run(start.scenario, start.file)
            dialog = await screen_of(pilot, StartRunDialog)
            assert rendered(dialog, ".problem") == "This run is being played: watch it."
            assert str(dialog.query_one("#go", Button).label) == "Watch"
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is not dialog, "the run")
            assert app.runs.sessions == [session]
            assert not notes(app)
    assert not RunDirectory(place).being_played()


async def killed(app: MarketApp, pilot: Pilot[None], start: Start, rounds: int) -> Session:
    """Play some rounds of a run, to the checkpoint after them, and kill its process."""
    session = app.runs.start(replace(start, paused=True), "small")
    await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
    for n in range(1, rounds + 1):
        app.runs.send(session, "step")
        await until(pilot, lambda n=n: len(session.history) == n, "a round")
    # Its round stands in the files, which the screen follows, before the checkpoint after it does.
    await until(pilot, (session.directory / f"checkpoint/{rounds:08d}.json").exists, "the checkpoint")
    os.kill(runner_of(app, session), signal.SIGKILL)
    await until(pilot, lambda: session.state is RunState.FAILED, "the failure")
    return session


async def interrupted(small: Path, runner: tuple[str, ...], rounds: int, policy: str | None = None) -> Path:
    """Play some rounds, kill the runner, and return the directory that it leaves."""
    app = MarketApp(out=small / "runs", folder=small, runner=runner)
    async with app.run_test(size=(120, 40)) as pilot:
        directory = (await killed(app, pilot, start_of(small, policy=policy), rounds)).directory
    assert RunDirectory(directory).state is RunState.INCOMPLETE
    return directory


@pytest.mark.slow
async def test_an_interrupted_run_resumes_where_it_stopped_and_says_so(small: Path, fake_runner: Runner) -> None:
    directory = await interrupted(small, fake_runner("careful"), 5)
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(120, 40)) as pilot:
        await screen_of(pilot, StartRunDialog)
        await until(pilot, lambda: str(app.screen.query_one("#go", Button).label) == "Resume", "the run that is there")
        assert "An interrupted run exists; it resumes where it stopped." in rendered(app.screen, ".problem")
        app.screen.query_one("#paused", Tick).value = True
        app.screen.query_one("#go", Button).press()
        screen = await screen_of(pilot, MarketScreen)
        session = screen.session
        await until(pilot, lambda: "The run resumes from its last checkpoint." in str(notes(app)), "the notification")
        assert "To begin again at round 1, run it with “start over” ticked." in str(notes(app))
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
        await screen_of(pilot, StartRunDialog)
        await until(pilot, lambda: app.screen.query_one("#fresh").display, "the run that is there")
        app.screen.query_one("#fresh", Tick).value = True
        await pilot.pause()
        assert "An interrupted run exists; it starts over." in rendered(app.screen, ".problem")
        app.screen.query_one("#go", Button).press()
        screen = await screen_of(pilot, MarketScreen)
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
        await screen_of(pilot, PickRunsDialog)
        app.screen.query_one(SelectionList).select("policy:hqfa")
        app.screen.query_one("#go", Button).press()
        await screen_of(pilot, CompareScreen)
        other = app.screen.sessions[1]
        await until(pilot, lambda: "The run resumes from its last checkpoint." in str(notes(app)), "the notification")
        await until(pilot, lambda: other.state is RunState.COMPLETE, "the other run")
        assert len(other.history) == 12
    assert other.directory == directory
    assert "continue after round 2" in (directory / "run.log").read_text()


@pytest.mark.slow
async def test_a_run_that_failed_and_was_resumed_is_opened_as_complete(small: Path, fake_runner: Runner) -> None:
    """Whether this app or another process has resumed it."""
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("careful"))
    async with app.run_test(size=(160, 40)) as pilot:
        failed = await killed(app, pilot, start_of(small), 2)
        directory = failed.directory
        resumed = app.runs.start(start_of(small), "small")
        assert resumed is not failed
        await until(pilot, lambda: resumed.state is RunState.COMPLETE, "the end")
        await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
        await pilot.press("f5", "slash", *"targets", "enter")
        await until(pilot, lambda: app.home.chosen is not None, "the run")
        await pilot.press("p")
        await screen_of(pilot, MarketScreen)
        assert app.screen.session is resumed
        await pilot.press("escape")

        again = await killed(app, pilot, start_of(small, fresh=True), 2)
        assert app.runs.open(directory) is again  # it shows what is there
        play_headlessly(start_of(small), fake_runner("careful"))
        assert RunDirectory(directory).state is RunState.COMPLETE
        opened = app.runs.open(directory)
        assert again not in app.runs.sessions
        await until(pilot, lambda: opened.state is RunState.COMPLETE, "what the directory holds")
        assert len(opened.history) == 12
