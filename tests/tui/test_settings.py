"""What the app remembers between starts, and what it does with a file that is none."""

import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from textual.widgets import OptionList

from support.screens import Play, notes, until, watching
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.settings import Settings, SettingsError, load, own_themes, save, settings_file


def test_settings_are_written_beside_comments_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "flmarket" / "tui.toml"
    assert load(path) == Settings()
    nord = Settings(theme="nord", speed=2.0, panel=4, maximised=True, keys={"market.pause": "p"})
    save(path, nord, Settings())
    assert load(path) == nord
    path.write_text(f"# mine\n{path.read_text()}")
    save(path, replace(nord, theme="dracula", speed=inf), nord)
    assert path.read_text().startswith("# mine\n")
    assert 'speed = "full"' in path.read_text()
    assert load(path) == replace(nord, theme="dracula", speed=inf)
    save(tmp_path / "tui.toml", Settings(theme="nord"), Settings())
    assert "speed" not in (tmp_path / "tui.toml").read_text()
    assert load(tmp_path / "tui.toml").speed is None
    # Settings are written beside comments and read again.
    # A speed that nobody chose is not written.


def test_the_settings_are_in_the_folder_for_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings_file() == tmp_path / "flmarket" / "tui.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # which the specification tells us to ignore
    assert settings_file() == Path.home() / ".config" / "flmarket" / "tui.toml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theme = ", "Invalid value"),
        ("thme = 'nord'", "thme: unknown key; the keys are theme, speed, motion, panel, maximised, keys"),
        ("theme = 3", "theme: must be the name of a theme"),
        ("speed = 0", 'speed: must be rounds per second, up to 1000, or "full"'),
        ("speed = true", 'speed: must be rounds per second, up to 1000, or "full"'),
        ("panel = 0", "panel: must be the number of a panel"),
        ("maximised = 1", "maximised: must be true or false"),
        ("keys = ['p']", 'keys: must be a table such as { "market.pause" = "p" }'),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "tui.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


@pytest.mark.slow
async def test_theme_speed_and_panel_are_there_again(small: Path, play_small: Play) -> None:
    path = small / "tui.toml"
    app = MarketApp(out=small / "runs", folder=small, settings=path)
    async with app.run_test(size=(160, 48)) as pilot:
        app.push_screen(MarketScreen(play_small(), app))
        await pilot.pause()
        await pilot.press("5", "m", "-", "-")
        app.theme = "nord"
        await pilot.press("escape", "escape")
        await pilot.pause()
    assert load(path) == Settings(theme="nord", speed=5, panel=5, maximised=False)
    again = MarketApp(out=small / "runs", folder=small, settings=path)
    async with again.run_test(size=(160, 48)) as pilot:
        assert again.theme == "nord"
        again.push_screen(screen := MarketScreen(play_small(), again))
        await pilot.pause()
        await until(pilot, lambda: screen.panels.all[4].has_focus_within, "the panel of the last time")


async def test_nothing_is_written_where_nothing_is_new_and_a_broken_file_stays(small: Path) -> None:
    path = small / "tui.toml"
    async with MarketApp(out=small / "runs", folder=small, settings=path).run_test():
        pass
    assert not path.exists()
    path.write_text("theme = 3 # mine\n")
    app = MarketApp(out=small / "runs", folder=small, settings=path)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert notes(app) == [
            f"{path}: theme: must be the name of a theme\nThe settings are not used, and not changed."
        ]
        app.theme = "nord"
    assert path.read_text() == "theme = 3 # mine\n"


@pytest.mark.parametrize(
    ("meanwhile", "kept"),
    [
        (
            b'\xef\xbb\xbftheme = "nord"\r\npanel = 3 # mine\r\n',
            b'\xef\xbb\xbftheme = "dracula"\r\npanel = 3 # mine\r\n',
        ),
        (b"panel = 3\nthe", b"panel = 3\nthe"),  # half of it is typed
    ],
)
async def test_what_was_edited_in_the_settings_meanwhile_stays(small: Path, meanwhile: bytes, kept: bytes) -> None:
    path = small / "tui.toml"
    path.write_bytes(b'\xef\xbb\xbftheme = "nord"\r\npanel = 2\r\n')
    app = MarketApp(out=small / "runs", folder=small, settings=path)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.theme == "nord"
        path.write_bytes(meanwhile)
        app.theme = "dracula"
    assert path.read_bytes() == kept


async def test_keys_are_changed_by_name_and_themes_of_the_users_own_are_there(small: Path, play_small: Play) -> None:
    path, themes = small / "tui.toml", small / "themes"
    path.write_text('[keys]\n"market.next-round" = "z"\n"market.nxt-round" = "z"\n')
    themes.mkdir()
    (themes / "mine.toml").write_text('primary = "#88c0d0"\ndark = false\n')
    (themes / "broken.toml").write_text('primary = "reddish"\n')
    app = MarketApp(out=small / "runs", folder=small, settings=path)
    async with watching(app, play_small()) as (pilot, screen):
        assert not app.available_themes["mine"].dark
        await until(pilot, lambda: len(notes(app)) == 2, "the problems")
        assert f'A theme is not used: {themes / "broken.toml"}: primary: must be a colour such as "#88c0d0"' in notes(
            app
        )
        unknown = f"{path}: keys: unknown name 'market.nxt-round'; did you mean 'market.next-round'?"
        assert any(note.startswith(unknown) for note in notes(app))
        await pilot.press("home", "z", "z")
        assert screen.head.round == 3


@pytest.mark.slow
async def test_the_palette_has_every_key_scenario_and_run(small: Path, play_small: Play) -> None:
    app = MarketApp(out=small / "runs", folder=small)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.home.entries, "the lists")
        app.runs.sessions.append(play_small())
        screen = MarketScreen(app.runs.sessions[0], app)
        app.push_screen(screen)
        await pilot.pause()
        offered = {command.title: command.callback for command in app.get_system_commands(screen)}
        assert {"Export", "Next outbid", "Run quickstart", "Edit small.toml"} <= offered.keys()
        assert f"Go to {app.runs.sessions[0].label}" in offered
        await pilot.press("ctrl+p")
        found = app.screen.query_one(OptionList)
        found.clear_options()
        found.display = False  # as it is until there are commands
        await pilot.pause()
        found.add_option("a command")
        await pilot.press("pageup", "pagedown", "escape")  # do no harm
        await pilot.press("ctrl+p")
        await pilot.press(*"maximise order", "escape")  # it answers, whatever is typed
        await pilot.press("ctrl+p", *"first round")
        offered = app.screen.query_one(OptionList)
        await until(pilot, lambda: offered.option_count and "First round" in str(offered.options[0].prompt))
        await pilot.press("enter")
        await until(pilot, lambda: screen.head.round == 1, "the first round")


async def test_a_scenario_is_edited_in_the_users_own_editor(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + '# edited')"
    monkeypatch.setenv("VISUAL", shlex.join([sys.executable, "-c", script]))
    app = MarketApp(out=small / "runs", folder=small)
    monkeypatch.setattr(app, "suspend", nullcontext)  # a terminal there is not
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.home.entries, "the lists")
        await pilot.press("ctrl+e")  # a built-in scenario: not in place
        assert "Only your own" in str(notes(app))
        await pilot.press("slash", *"small", "enter", "ctrl+e")
        await until(pilot, lambda: (small / "small.toml").read_text().endswith("# edited"), "the editor")
        monkeypatch.setenv("VISUAL", "no-such-editor --wait")
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "no-such-editor: cannot be started" in str(notes(app)))
        monkeypatch.setenv("VISUAL", "")
        monkeypatch.setenv("EDITOR", "")
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "Set VISUAL or EDITOR" in str(notes(app)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('prime = "red"', "prime: unknown key; the keys are dark, primary, "),
        ("dark = 1", "dark: must be true or false"),
        ('accent = "red"', "primary: is missing"),
        ('primary = "transparent"', "primary: must be a colour"),
        ('primary = "ansi_red"', "primary: must be a colour"),
        ("primary", "Expected '=' after a key"),
    ],
)
def test_what_is_wrong_with_a_theme_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    [found] = own_themes(tmp_path)
    assert isinstance(found, SettingsError)
    assert words in str(found)
