"""Help: what the keys that work now are for, each once, and in words of what one wants to do."""

from collections.abc import Callable
from pathlib import Path

from textual.screen import Screen

from support.screens import painted, watching
from tui.app import MarketApp
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.help import HelpScreen, every_key
from tui.screens.home import HomeScreen
from tui.state.watched_run import Session

Play = Callable[..., Session]
RAW = ("Scroll Left", "Scroll Right", "Page Left", "Page Down", "Focus Next", "Copy selected text", "Move cursor")


async def listed(app: MarketApp) -> list[tuple[str, str]]:
    """The lines of keys in the help for what has the focus."""
    screen = HelpScreen.of_focus(app, {})
    return screen._keys


def check(lines: list[tuple[str, str]], of: str) -> None:
    keys = [key for written, _ in lines for key in written.split()]
    assert len(keys) == len(set(keys)), of
    assert len({purpose for _, purpose in lines}) == len(lines), of
    assert not [purpose for _, purpose in lines if purpose.startswith(RAW)], of


async def test_each_key_is_listed_once_and_by_its_purpose(app: MarketApp, play_small: Play, small: Path) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, _):
        for number in range(1, 9):
            await pilot.press(str(number))
            lines = await listed(app)
            check(lines, f"panel {number}")
            assert ("[ ← h" in dict(lines)) == (number not in (3, 7)), number  # there, ← chooses or scrolls
            assert dict(lines)["space"] == "Pause or resume the run; play or stop a replay"
            assert "1 2 3 4 5 6 7 8" in dict(lines)
        others: list[Screen[None]] = [
            CompareScreen([session, play_small(rounds=5)], app),
            BatchScreen(small, app),
            HomeScreen(app),
        ]
        for other in others:
            app.push_screen(other)
            await pilot.pause(0.2)
            check(await listed(app), type(other).__name__)


async def test_the_keys_of_all_screens_are_searched(app: MarketApp, play_small: Play) -> None:
    def found() -> list[tuple[str, str]]:
        """The keys that are shown, each with where it works."""
        region = app.screen.query_one("#keys").region
        lines = [line[region.x : region.right].split() for line in painted(app).splitlines()]
        return [(line[0], line[-1]) for line in lines[region.y : region.bottom]]

    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("question_mark", "slash", *"fork")
        await pilot.pause(0.2)
        assert found() == [("i", "Market")]
        assert "accuracy of its model" not in painted(app)  # the words on the panel
        await pilot.press(*["backspace"] * 4, *"seeds", "enter")
        await pilot.pause(0.2)
        assert found() == [("s", "Compare"), ("enter", "Batch"), ("g", "Batch")]
        await pilot.press("slash", *["backspace"] * 5, "O")  # a key, not any word with an o
        await pilot.pause(0.2)
        assert found() == [("O", "Market")]
        await pilot.press("escape")
        assert "accuracy of its model" in painted(app)
        await pilot.press("escape")
        assert app.screen is screen


async def test_a_key_that_was_changed_is_listed_as_it_is_now(small: Path) -> None:
    app = MarketApp(out=small / "runs", folder=small)
    [row] = [
        row for row in every_key(app, {"market.pause": "p,ctrl+t"}) if row[1].startswith("Pause or resume the run")
    ]
    assert row[0] == "p ctrl+t"
