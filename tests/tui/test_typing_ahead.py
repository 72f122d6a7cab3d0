"""Keys that are typed ahead: each is handled, with all that it leads to, before the next."""

import asyncio
import importlib
import pkgutil
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Checkbox, Input, OptionList, Select, SelectionList, TabbedContent

import tui.screens
from scenarios.loader import parse
from support.screens import PATIENCE, Play, until
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen, SaveDialog
from tui.screens.dialog import Closing, Dialog, Jump, LeaveDialog, QuitDialog
from tui.screens.export_dialog import ExportDialog
from tui.screens.help import HelpScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen
from tui.screens.playback import GotoDialog
from tui.screens.run_dialogs import PickRunsDialog, StartRunDialog
from tui.screens.search import Palette, SearchLine
from tui.screens.training import TrainingScreen
from tui.widgets.form_field import FieldRow
from tui.widgets.line_view import LineView

Opened = Callable[[MarketApp, Path, Play], Screen[Any]]

SCREENS: dict[type[Screen[Any]], Opened] = {
    StartRunDialog: lambda app, small, _: StartRunDialog(
        parse((small / "small.toml").read_text()), (small / "small.toml").read_text(), "small.toml", small / "runs"
    ),
    PickRunsDialog: lambda app, small, play: PickRunsDialog(play(), app.runs, small / "runs"),
    InterventionDialog: lambda app, small, play: InterventionDialog(play(), 4, 1),
    ExportDialog: lambda app, small, play: ExportDialog(play(), app.screen, "Services"),
    SaveDialog: lambda app, small, _: SaveDialog(small / "new.toml"),
    GotoDialog: lambda app, small, play: GotoDialog(play().history, 5),
    QuitDialog: lambda app, small, _: QuitDialog(2),
    LeaveDialog: lambda app, small, _: LeaveDialog(),
    Jump: lambda app, small, _: Jump([(app.screen.query_one(Input), Offset(3, 3))]),
    SearchLine: lambda app, small, _: SearchLine(app.screen.query_one(OptionList), ["strokes"]),
    Palette: lambda app, small, _: Palette(),
    HelpScreen: lambda app, small, _: HelpScreen.of_focus(app, {}),
    ConfigureScreen: lambda app, small, _: ConfigureScreen(
        (small / "small.toml").read_text(), str(small / "small.toml"), None, app
    ),
}
KEYS = ["tab", "tab", "shift+tab", "space", "space", "down", "down", "up", "right", "7", "9", "a"]
"""The keys that are drawn: none of them leaves a screen."""


def state(app: App[Any]) -> Iterator[object]:
    """All that keys have changed: the screens, the focus, and what is typed, marked, chosen and highlighted."""
    yield [type(screen).__name__ for screen in app.screen_stack]
    yield app.focused and (type(app.focused).__name__, app.focused.id)
    for screen in app.screen_stack:
        for widget in screen.walk_children():
            if isinstance(widget, Input):
                yield widget.value, widget.cursor_position
            elif isinstance(widget, SelectionList):
                yield sorted(widget.selected), widget.highlighted
            elif isinstance(widget, OptionList):
                yield widget.highlighted
            elif isinstance(widget, LineView):
                yield widget.cursor
            elif isinstance(widget, Checkbox | Select):
                yield widget.value
            elif isinstance(widget, TabbedContent):
                yield widget.active


def typed(app: App[Any], *keys: str) -> None:
    """Type keys faster than the app can handle them: a terminal sends them in one piece."""
    for key in keys:
        app.post_message(Key(key, {"space": " "}.get(key, key if len(key) == 1 else None)))


async def outcome(pilot: Pilot[None], screen: Screen[Any], keys: Sequence[str], *, ahead: bool) -> list[object]:
    """Return what keys have come to on a screen, which is closed then."""
    app = pilot.app
    app.push_screen(screen)
    await until(pilot, lambda: app.screen is screen and (screen.query(FieldRow) or isinstance(screen, Closing)))
    if ahead:
        typed(app, *keys)
        await until(pilot, lambda: not app.message_queue_size and (app._turns is None or app._turns.done()))  # type: ignore[attr-defined]
    else:
        for key in keys:
            await pilot.press(key)
    await until(pilot, lambda: all(job.is_finished for job in app.workers))
    found = list(state(app))
    while len(app.screen_stack) > 1:
        app.pop_screen()
    await pilot.pause()
    return found


@pytest.fixture
def at_home(small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which is the current one: what a dialog exports is written there."""
    monkeypatch.chdir(small)
    return small


async def test_every_dialog_and_the_form_take_keys_at_once_as_they_take_them_one_by_one(
    app: MarketApp, at_home: Path, play_small: Play
) -> None:
    draw = random.Random(57)  # noqa: S311 - which keys
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.home.entries)
        for kind, opened in SCREENS.items():
            keys = ["space", "down", "space", "down", "space", "tab", "7", *draw.choices(KEYS, k=6)]
            if kind is not Palette and kind is not PickRunsDialog:
                keys.append("enter")
            if kind is SearchLine:  # which they leave for the screen below, where what they did would stay
                keys = [key for key in keys if "tab" not in key]
            slow = await outcome(pilot, opened(app, at_home, play_small), keys, ahead=False)
            fast = await outcome(pilot, opened(app, at_home, play_small), keys, ahead=True)
            assert fast == slow, (kind.__name__, keys)


def test_every_dialog_is_among_those_that_are_typed_into() -> None:
    for module in pkgutil.walk_packages(tui.screens.__path__, "tui.screens."):
        importlib.import_module(module.name)
    kinds, found = [Closing], set()
    while kinds:
        found.add(kind := kinds.pop())
        kinds += kind.__subclasses__()
    assert {kind for kind in found if kind.__module__.startswith("tui.")} - {Closing, Dialog} <= set(SCREENS)


async def test_marks_go_to_the_lines_on_which_space_was_pressed(app: MarketApp, small: Path, play_small: Play) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(dialog := SCREENS[StartRunDialog](app, small, play_small))
        await pilot.pause()
        marks = dialog.query_one(SelectionList)
        before, place = set(marks.selected), marks.highlighted
        typed(app, "space", "down", "space", "down", "space")
        await until(pilot, lambda: marks.highlighted == 2)
        await pilot.pause()
        assert place == 0
        assert before ^ set(marks.selected) == {marks.get_option_at_index(index).value for index in range(3)}


async def test_what_is_typed_after_a_search_goes_to_the_part_that_it_was_left_for(
    app: MarketApp, small: Path, play_small: Play
) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(dialog := SCREENS[StartRunDialog](app, small, play_small))
        await pilot.pause()
        marks, paused = dialog.query_one(SelectionList), dialog.query_one("#paused", Checkbox)
        before = set(marks.selected)
        typed(app, *"lcfa", "space", *"noise", "escape", *"hqfa", "shift+tab", "space")
        await until(pilot, lambda: paused.value)
        assert app.screen is dialog
        assert set(marks.selected) - before == {"lcfa"}
        assert "hqfa" in str(marks.get_option_at_index(marks.highlighted or 0).prompt)


async def test_what_is_typed_after_tab_goes_to_the_next_field(app: MarketApp, small: Path, play_small: Play) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(dialog := InterventionDialog(play_small(), 4, 1))
        await pilot.pause()
        value, round_ = dialog.query_one("#value", Input), dialog.query_one("#round", Input)
        before = value.value
        value.focus()
        typed(app, "tab", "7")
        await until(pilot, lambda: round_.value == "7" or value.value != before)
        assert (value.value, round_.value) == (before, "7")


async def test_a_command_that_is_typed_ahead_is_found_before_it_is_chosen(app: MarketApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        typed(app, "colon", *"theme", "space", *"nord", "down", "enter", "enter")
        await until(pilot, lambda: app.theme == "nord")


@contextmanager
def no_busy_wait() -> Iterator[None]:
    """Fail where the loop is kept busy, in which no other wait would end."""
    stuck = []

    def interrupt(*_: object) -> None:
        stuck.append("by what waits without a pause")
        raise RuntimeError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(int(PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert not stuck


async def test_a_key_lets_parts_that_close_end_before_it(app: MarketApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take no message any more, and must still come to handle those that they have."""
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.home.entries)
        with no_busy_wait(), monkeypatch.context() as patch:
            app.screen.call_later(lambda: None)
            for part in (app, *app.screen.walk_children(with_self=True)):
                patch.setattr(part, "_closing", True)
            await app._quiet(typing=False)
        assert not app.screen.message_queue_size


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.0, 0.1, 0.2, 0.3])
async def test_the_app_ends_whatever_is_typed_meanwhile(app: MarketApp, wait: float) -> None:
    with no_busy_wait():
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.home.entries)
            typed(app, *["question_mark", "down", "down", "tab", "escape"] * 60)
            await asyncio.sleep(wait)
            app.exit()


WATCHING: dict[type[Screen[Any]], Opened] = {
    MarketScreen: lambda app, small, play: MarketScreen(play(), app),
    CompareScreen: lambda app, small, play: CompareScreen([play(), play(seed=2)], app),
    BatchScreen: lambda app, small, play: BatchScreen(small, app),
    TrainingScreen: lambda app, small, play: TrainingScreen([small / "agent.csv"]),
}


@pytest.mark.parametrize(
    "kind", [CompareScreen, *slow(*(kind for kind in SCREENS | WATCHING if kind is not CompareScreen))]
)
async def test_the_app_ends_while_a_screen_opens(at_home: Path, play_small: Play, kind: type[Screen[Any]]) -> None:
    """Some of its parts are there, and others are not."""
    app = MarketApp(out=at_home / "runs", folder=at_home)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.home.entries)
        app.push_screen((SCREENS | WATCHING)[kind](app, at_home, play_small))
