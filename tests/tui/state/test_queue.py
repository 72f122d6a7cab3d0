"""Which runs get a process: never more than cores, none twice."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue

import pytest
from textual.widgets import Button, Static

from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.processes import Messages, Process
from support.screens import PATIENCE, start_of, until
from tui.app import MarketApp
from tui.screens.run_dialogs import StartRunDialog
from tui.state.runs import Runs

Runner = Callable[[str], tuple[str, ...]]
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


async def test_a_run_that_another_program_plays_is_opened_not_started(
    app: MarketApp, small: Path, fake_runner: Runner
) -> None:
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
            dialog = StartRunDialog(parse(start.scenario), start.scenario, start.file, app.out)
            app.push_screen(dialog, app._start_runs)
            await pilot.pause()
            assert str(dialog.query_one(".problem", Static).render()) == "This run is being played: watch it."
            assert str(dialog.query_one("#go", Button).label) == "Watch"
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is not dialog, "the run")
            assert app.runs.sessions == [session]
            assert not list(app._notifications)
    assert not RunDirectory(place).being_played()
