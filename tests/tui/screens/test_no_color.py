"""Without colours: some terminals and users set NO_COLOR."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.style import Style

from support.screens import watching
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.state.watched_run import Session


def styles(app: MarketApp) -> set[Style | None]:
    """The styles that reach the terminal."""
    return {segment.style for strip in app.screen._compositor.render_strips() for segment in strip}


def is_grey(style: Style | None) -> bool:
    """Whether a style's colours are shades of grey."""
    colors = [] if style is None else [color for color in (style.color, style.bgcolor) if color is not None]
    return all(color.triplet is None or len(set(color.triplet)) == 1 for color in colors)


async def test_a_replay_and_a_comparison_are_shown_in_grey(
    small: Path, play_small: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seek bar and the canvas of the plots have text without a style of its own."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = MarketApp(out=small / "runs", folder=small)
    session = play_small()
    async with watching(app, session) as (pilot, _):
        await pilot.press("home", "right", "e", "m", "2", "v", "m")
        assert all(map(is_grey, styles(app)))
        app.push_screen(CompareScreen([session, play_small(rounds=3)], app))
        await pilot.pause()
        assert all(map(is_grey, styles(app)))
