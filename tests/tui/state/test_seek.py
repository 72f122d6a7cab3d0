"""The pace of a run that is watched, the round that is gone to, and how a slow one unfolds."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

import tui.state.pace
from des.log_records import Kind
from scenarios.logs.run_state import RunState
from support.screens import Play, Runner, rendered, screen_of, until, watching
from support.tiers import slow
from tui.app import MarketApp
from tui.panels.status_line import StatusLine
from tui.screens import playback
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import StartRunDialog
from tui.state.pace import WINDOW, Pace, faster, to_watch
from tui.state.watched_run import Session


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui.state.pace, "TO_WATCH", 0.001)
    monkeypatch.setattr(tui.state.pace, "LONGEST", inf)


@asynccontextmanager
async def begun(app: MarketApp, small: Path, *keys: str) -> AsyncIterator[tuple[Pilot[None], list[Session]]]:
    """Run the small scenario by the dialog, in which some keys are pressed first."""
    async with app.run_test(size=(160, 48)) as pilot:
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await screen_of(pilot, StartRunDialog)
        await pilot.press(*keys, "enter")
        await until(pilot, lambda: isinstance(app.screen, MarketScreen | CompareScreen), "the runs")
        yield pilot, app.runs.sessions


def status(app: MarketApp) -> str:
    return rendered(app.screen, StatusLine).split("\n")[0]


@pytest.mark.parametrize(("rounds", "speed"), [(1, 5), (12, 5), (300, 5), (301, 301 / 60), (6000, 100)])
def test_a_run_plays_at_five_rounds_a_second_and_for_a_minute_at_most(rounds: int, speed: float) -> None:
    assert to_watch(rounds) == speed
    assert rounds / to_watch(rounds) <= 60


@pytest.mark.parametrize("rounds", [12, 400, 6000])
def test_a_watched_run_becomes_faster_and_slower_from_any_speed(rounds: int) -> None:
    def value(speed: float | None) -> float:
        return inf if speed is None else speed

    speed = to_watch(rounds)
    assert value(faster(speed, -1)) < speed < value(faster(speed, 1))


@pytest.mark.slow
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
async def test_the_key_plays_at_full_speed_and_later_runs_keep_a_chosen_speed(app: MarketApp, small: Path) -> None:
    async with begun(app, small) as (pilot, [session]):
        await until(pilot, lambda: session.state is RunState.RUNNING, "the runner")
        assert not len(session.history)
        await pilot.press("F")
        await until(pilot, lambda: session.state is RunState.COMPLETE, "all rounds")
        assert app.settings.speed == inf
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await screen_of(pilot, StartRunDialog)
        await pilot.press(*"7..7", "enter")
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
        await until(pilot, lambda: all(one.state is RunState.COMPLETE for one in sessions), "all rounds of both")
        assert app.settings.speed is None  # nobody chose that
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await screen_of(pilot, StartRunDialog)
        await pilot.press(*"7..7", "enter")
        watched = app.runs.sessions[-1]
        await until(pilot, lambda: watched.state is RunState.RUNNING, "one that is watched")
        assert not len(watched.history)
        app.show_comparison([watched, play_small()])
        await until(pilot, lambda: watched.state is RunState.COMPLETE, "all its rounds")


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
async def test_rounds_that_are_there_come_at_once(small: Path, fake_runner: Runner) -> None:
    careful = fake_runner("careful")  # which keeps every round
    async with begun(MarketApp(out=small / "runs", folder=small, runner=careful), small) as (pilot, [session]):
        await pilot.press("space")
        await until(pilot, lambda: session.state is RunState.PAUSED, "the pause")
        for _ in range(3):
            played = len(session.history)
            await pilot.press("s")
            await until(pilot, lambda played=played: len(session.history) == played + 1, "a round")
        played = len(session.history)
    async with begun(MarketApp(out=small / "runs", folder=small, runner=careful), small) as (pilot, [session]):
        await until(pilot, lambda: len(session.history) == played, "the rounds of the interrupted run")
        assert session.speed == 0.001


def test_rounds_that_are_read_after_a_run_was_found_gone_have_no_pace(play_small: Play) -> None:
    whole, gone = play_small(), play_small(rounds=3)
    gone.pace = Pace(iter(range(99)).__next__)
    gone.move(RunState.GONE)
    for number in range(4, 8):
        gone.add(whole.history[number].text)
    assert gone.pace.rate() is None


def test_the_pace_is_that_of_the_last_seconds_and_there_is_none_before_one_has_passed_nor_after_a_pause() -> None:
    now = 100.0
    pace = Pace(lambda: now)

    def play(rounds: int, every: float) -> float | None:
        """Play some rounds, one after so many seconds; return the pace after them."""
        nonlocal now
        for _ in range(rounds):
            pace.add()
            now += every
        return pace.rate()

    assert pace.rate() is None
    assert play(5, 0.1) is None
    now += 1
    assert pace.rate() is not None
    assert play(40, 0.25) == pytest.approx(4, abs=0.3)
    assert play(100, 0.1) == pytest.approx(10, abs=0.3)
    now += 20
    assert pace.rate() < 3
    pace.stop()
    assert pace.rate() is None
    assert play(1, 2) is None  # one round alone: nobody knows how long it took
    pace.add()
    assert pace.rate() == 0.5
    assert play(100_000, 0.0001) == pytest.approx(10_000, abs=100)
    assert len(pace._samples) < 12 * WINDOW  # a fast run does not keep every round


@pytest.mark.parametrize("size", [(80, 24), *slow(((120, 36),), ((200, 60),))])
async def test_g_asks_for_a_round_and_goes_there(app: MarketApp, play_small: Play, size: tuple[int, int]) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("g")
        await screen_of(pilot, GotoDialog)
        assert app.screen.query_one(Input).value == "12"
        await pilot.press("5", "enter")  # the number that is there is selected, and replaced
        assert app.screen is screen
        assert (screen.head.round, screen.head.following) == (5, False)
        await pilot.press("g", "escape")
        assert screen.head.round == 5


@pytest.mark.slow
async def test_what_is_no_round_is_refused_with_the_rounds_there_are(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=9, state=RunState.PAUSED)
    async with watching(app, session) as (pilot, screen):
        await pilot.press("g")
        await screen_of(pilot, GotoDialog)
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


async def test_the_status_shows_speed_and_time_left(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    session = play_small(rounds=2, state=RunState.RUNNING)
    session.pace = Pace(lambda: now[0])
    for _ in range(20):
        now[0] += 0.5
        session.pace.add()
    async with watching(app, session) as (pilot, screen):
        shown = screen.query_one(StatusLine)
        assert "by another process, now 2/s, at most 5 s left" in str(shown.render())  # 10 of 12 rounds
        # What is left goes by the speed that was just chosen.
        monkeypatch.setattr(app.runs, "steerable", lambda _: True)
        session.speed = 0.25
        screen.draw()
        assert "0.25 rounds/s (F: full speed), now 0.25/s, at most 40 s left" in str(shown.render())
        for state in (RunState.PAUSED, RunState.INTERRUPTED, RunState.COMPLETE):
            session.move(state)
            await until(pilot, lambda state=state: str(state) in str(shown.render()), state)
            assert "left" not in str(shown.render()).split("\n")[0]


@asynccontextmanager
async def next_round_of(app: MarketApp, session: Session) -> AsyncIterator[tuple[Pilot[None], MarketScreen]]:
    """A replay whose second round has come, as by its timer; the third does not come before the test is over."""
    session.speed = 0.001
    async with watching(app, session) as (pilot, screen):
        await pilot.press("home", "space")
        screen._play_on()
        yield pilot, screen


async def parts_of_a_round(app: MarketApp, session: Session, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """After how many events the second round of a slow replay is shown, part by part; None: the whole round."""
    found: list[int | None] = []
    following = MarketScreen._next_part

    def next_part(screen: MarketScreen) -> None:
        following(screen)
        if screen.head.round == 2:
            found.append(screen.head.event)

    monkeypatch.setattr(MarketScreen, "_next_part", next_part)
    async with next_round_of(app, session) as (pilot, screen):
        await until(pilot, lambda: screen.head.event is None, "the whole round")
    return found


async def test_a_slow_round_unfolds_part_by_part(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play_small()
    *parts, whole = await parts_of_a_round(app, session, monkeypatch)
    kinds = [session.history[2].events[part - 1].event for part in parts if part]
    assert kinds == [Kind.BID, Kind.DECISION, Kind.AWARD, Kind.TRAIN_END]
    assert whole is None


@pytest.mark.parametrize("switch", ["setting", "environment"])
async def test_it_is_shown_as_a_whole_where_nothing_is_to_move(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    if switch == "environment":
        monkeypatch.setenv("NO_MOTION", "1")
    app.settings.motion = switch == "environment"
    assert not await parts_of_a_round(app, play_small(), monkeypatch)


@pytest.mark.slow
async def test_keys_switch_it_off_or_show_all_at_once(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playback, "PART", 1000.0)
    async with next_round_of(app, play_small()) as (pilot, screen):
        for key in ("space", "right_square_bracket"):
            assert screen.head.event is not None
            await pilot.press(key)
            assert screen.head.event is None
            await pilot.press("space")  # plays again
            screen._play_on()
        await pilot.press("M")
        assert not app.settings.motion


@pytest.mark.slow
async def test_parts_of_a_round_are_not_those_of_the_next(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with next_round_of(app, session) as (_, screen):
        assert screen.head.event is not None
        screen.head.seek(session.history, len(session.history))  # as the last round does, which does not unfold
        screen._next_part()
        assert screen.head.event is None
