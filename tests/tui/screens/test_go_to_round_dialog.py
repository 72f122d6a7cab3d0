"""Going to a round by its number, and how fast the run is."""

from collections.abc import Callable

import pytest
from textual.widgets import Input, Static

from scenarios.logs.run_state import RunState
from support.screens import until, watching
from support.tiers import slow
from tui.app import MarketApp
from tui.panels.status_line import StatusLine
from tui.screens.playback import GotoDialog
from tui.state.pace import Pace
from tui.state.watched_run import Session

Play = Callable[..., Session]


@pytest.mark.parametrize("size", [(80, 24), *slow(((120, 36),), ((200, 60),))])
async def test_g_asks_for_a_round_and_goes_there(app: MarketApp, play_small: Play, size: tuple[int, int]) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, GotoDialog), "the dialog")
        assert app.screen.query_one(Input).value == "12"
        await pilot.press("5", "enter")  # the number that is there is selected, and replaced
        assert app.screen is screen
        assert (screen.head.round, screen.head.following) == (5, False)
        await pilot.press("g", "escape")
        assert screen.head.round == 5


async def test_what_is_no_round_is_refused_with_the_rounds_there_are(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=9, state=RunState.PAUSED)
    async with watching(app, session) as (pilot, screen):
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, GotoDialog), "the dialog")
        field, problem = app.screen.query_one(Input), app.screen.query_one(".problem", Static)
        for text, words in (
            ("10", "round 10 has not been played; choose one from 1 to 9"),
            ("0", "round 0 has not been played; choose one from 1 to 9"),
            ("two", "enter the number of a round, from 1 to 9"),
            ("", "enter the number of a round, from 1 to 9"),
            ("²", "enter the number of a round, from 1 to 9"),
        ):
            field.value = text
            await pilot.press("enter")
            assert str(problem.render()) == words
        session.add(play_small().history[10].text)  # the run goes on meanwhile
        field.value = "10"
        await pilot.press("enter")
        await until(pilot, lambda: screen.head.round == 10, "the round")


async def test_without_a_round_there_is_nothing_to_go_to(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(rounds=0, state=RunState.STARTING)) as (pilot, screen):
        await pilot.press("g")
        assert app.screen is screen
        assert "No round has been played yet." in [note.message for note in app._notifications]


async def test_the_status_shows_the_real_speed_and_the_time_left_at_most(app: MarketApp, play_small: Play) -> None:
    now = [100.0]
    session = play_small(rounds=2, state=RunState.RUNNING)
    session.pace = Pace(lambda: now[0])
    for _ in range(20):
        now[0] += 0.5
        session.pace.add()
    async with watching(app, session) as (pilot, screen):
        shown = screen.query_one(StatusLine)
        assert "by another process, now 2/s, at most 5 s left" in str(shown.render())  # 10 of 12 rounds
        session.move(RunState.PAUSED)
        await until(pilot, lambda: "paused" in str(shown.render()), "the pause")
        assert "left" not in str(shown.render()).split("\n")[0]


@pytest.mark.parametrize("state", [RunState.COMPLETE, RunState.INTERRUPTED])
async def test_a_run_that_is_over_has_no_speed(app: MarketApp, play_small: Play, state: RunState) -> None:
    async with watching(app, play_small(state=state)) as (_, screen):
        assert "left" not in str(screen.query_one(StatusLine).render()).split("\n")[0]
