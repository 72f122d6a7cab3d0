"""Each thing that overrides Textual is still needed: with a Textual that does without it, its test fails here."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.css.query import NoMatches
from textual.drivers import linux_driver
from textual.events import Click, Key
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets import Input, OptionList, SelectionList, Static
from textual.worker import Worker

import tui
from tui.textual_internals import SteadyApp, _click, _move_page

_MADE_BY_METACLASSES = {
    "_abc_impl",
    "_merged_bindings",
    "_inherit_bindings",
    "_inherit_css",
    "_inherit_component_classes",
    "_css_type_name",
    "_css_type_names",
    "_css_bases",
    "_decorated_handlers",
    "_reactives",
    "_computes",
    "_classes",
}


class Plain(App[None]):
    """Textual as it comes, with a list and a view."""

    def compose(self) -> ComposeResult:
        yield Static("above", id="above")
        yield OptionList("one", "two")
        yield ScrollView()


async def test_textual_fails_on_a_click_on_an_option_that_has_gone() -> None:
    async with Plain().run_test() as pilot:
        options, gone = pilot.app.query_one(OptionList), Style(meta={"option": 1000})
        click = Click(options, 1, 1, 0, 0, 1, False, False, False, style=gone)
        await options._on_click(click)
        with pytest.raises(IndexError):
            await _click(options, click)


async def test_textual_fails_on_pages_of_a_list_without_room() -> None:
    async with Plain().run_test(size=(20, 1)) as pilot:
        options = pilot.app.query_one(OptionList)
        options.highlighted = 0
        assert not options.scrollable_content_region
        options._move_page(1)
        with pytest.raises(KeyError):
            _move_page(options, 1)


def test_textuals_driver_decodes_strictly() -> None:
    assert 'getincrementaldecoder("utf-8")()' in inspect.getsource(linux_driver.LinuxDriver.run_input_thread)


async def test_textual_shows_the_values_of_variables_when_it_fails() -> None:
    assert "show_locals=True" in inspect.getsource(App._fatal_error)


async def test_textual_ends_an_app_for_a_widget_that_is_removed() -> None:
    async def look_in_a_removed_widget(app: App[None]) -> bool:
        async with app.run_test() as pilot:
            await app.screen.mount(widget := Widget())
            widget.remove()

            async def look() -> None:
                widget.query_one("#part")

            app.run_worker(look())
            await pilot.pause()
        return app._exception is None

    assert await look_in_a_removed_widget(SteadyApp())
    with pytest.raises(Exception, match="part") as caught:
        await look_in_a_removed_widget(Plain())
    assert isinstance(getattr(caught.value, "error", caught.value), NoMatches)


async def test_textual_lays_the_whole_screen_out_for_a_new_virtual_size() -> None:
    async with Plain().run_test() as pilot:
        view = pilot.app.query_one(ScrollView)
        view.virtual_size = Size(100, 100)
        assert view._layout_required


async def test_textual_sends_a_key_on_before_the_one_before_has_moved_the_focus() -> None:
    class Two:
        def compose(self) -> ComposeResult:
            yield Input(id="first")
            yield Input(id="second")

    async def typed_after_tab(app: App[None]) -> list[str]:
        async with app.run_test() as pilot:
            app.post_message(Key("tab", None))
            app.post_message(Key("7", "7"))
            while not any(field.value for field in app.query(Input)):
                await pilot.pause()
            return [field.value for field in app.query(Input)]

    assert await typed_after_tab(type("Plain", (Two, App), {})()) == ["7", ""]
    assert await typed_after_tab(type("Steady", (Two, SteadyApp), {})()) == ["", "7"]


async def _paints(app: App[None], above: Screen[None], monkeypatch: pytest.MonkeyPatch) -> int:
    """Count how often a screen is asked to paint by one message to the screen below, which has changed."""
    async with app.run_test() as pilot:
        below, asked = app.screen, list[object]()
        await app.push_screen(above)
        await pilot.pause()
        monkeypatch.setattr(above, "refresh", lambda *regions, **_: asked.append(regions))
        below.query_one("#above", Static).update("changed")
        for _ in range(3):
            below.call_next(below.check_idle)
            await pilot.pause(0.05)
        return len(asked)


async def test_textual_paints_an_opaque_screen_with_each_message_of_the_one_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Steady(Plain, SteadyApp):
        pass

    assert await _paints(Plain(), Screen(), monkeypatch) > 1
    assert not await _paints(Steady(), Screen(), monkeypatch)


async def test_a_screen_below_a_dialog_is_seen_and_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Steady(Plain, SteadyApp):
        pass

    assert await _paints(Steady(), ModalScreen(), monkeypatch)


def test_textual_has_no_public_name_for_what_is_called() -> None:
    for owner, public in [
        (App, "notifications"),
        (Screen, "render_strips"),
        (Screen, "mounted_event"),
        (Screen, "callbacks"),
        (Worker, "thread_worker"),
        (SelectionList, "left_gutter_width"),
    ]:
        assert not hasattr(owner, public)


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(tui.__path__, "tui."):
        if module.name != "tui.textual_internals":
            yield importlib.import_module(module.name)


def test_no_other_module_overrides_private_names_of_textual() -> None:
    overridden = {
        f"{module.__name__}.{name}.{own}"
        for module in _modules()
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        for own in vars(kind)
        if re.match("_[a-z]", own) and own not in _MADE_BY_METACLASSES
        for base in kind.__mro__[1:]
        if base.__module__.startswith("textual.") and own in vars(base)
    }
    assert not overridden


def test_no_other_module_uses_private_names_of_others() -> None:
    found = {
        f"{path.name}: {use}"
        for path in Path(*tui.__path__).rglob("*.py")
        if path.name != "textual_internals.py"
        for use in re.findall(r"(?<!self)(?<!cls)\._[a-z]\w*|import _\w+|textual\._\w+", path.read_text("utf-8"))
        if use != "._replace"  # of a named tuple
    }
    assert not found
