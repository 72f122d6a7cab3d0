"""A round that comes slowly unfolds: bids, offers, awards, trainings, results. It can be switched off."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from des.log_records import Kind
from support.screens import until, watching
from tui.app import MarketApp
from tui.screens import playback
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session

Play = Callable[..., Session]


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


async def test_a_slow_round_unfolds_from_the_bids_to_the_results(
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


async def test_a_key_switches_it_off_and_a_key_shows_the_whole_round_at_once(
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


async def test_parts_of_a_round_are_not_those_of_the_next(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with next_round_of(app, session) as (_, screen):
        assert screen.head.event is not None
        screen.head.seek(session.history, len(session.history))  # as the last round does, which does not unfold
        screen._next_part()
        assert screen.head.event is None
