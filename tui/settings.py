"""Settings that are kept between starts, in one TOML file that the user may edit, and the user's own themes."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from flmarket.core.errors import InputError, shortened
from flmarket.core.files import BYTE_ORDER_MARK, laid_out_as, replacing_text

FULL = "full"  # the word for full speed


class SettingsError(InputError):
    """The file of settings cannot be used; the message says which line or key, and what to do."""


@dataclass
class Settings:
    """The settings."""

    theme: str = ""  # the name of a theme; empty for Textual's own choice
    # rounds per second of a run that is started; infinite for full speed, None until the user has chosen one
    speed: float | None = None
    motion: bool = True  # whether a round that comes slowly is shown part by part
    panel: int = 1  # the number of the panel that has the focus in a market
    maximised: bool = False  # whether that panel has all the room
    # keys that the user has changed, by the names in docs/tui.md, such as ``market.pause = "p"``
    keys: dict[str, str] = field(default_factory=dict)


def settings_file() -> Path:
    """Return where the settings are: ``flmarket/tui.toml`` in ``XDG_CONFIG_HOME``, or else in ``~/.config``."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    return (folder if folder.is_absolute() else Path.home() / ".config") / "flmarket" / "tui.toml"


def load(path: Path) -> Settings:
    """Return the settings in a file; the defaults if there is none."""
    if not path.exists():
        return Settings()
    values = read_toml(path)
    known = {each.name: getattr(Settings(), each.name) for each in fields(Settings)}
    for key, value in values.items():
        if key not in known:
            raise SettingsError(f"{path}: {key}: unknown key; the keys are {', '.join(known)}")
        if problem := _problem(key, value):
            raise SettingsError(f"{path}: {key}: {problem}")
    if values.get("speed") == FULL:
        values["speed"] = inf
    return Settings(**{**known, **values})


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a file of the user's settings holds."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: {shortened(error)}") from error


def _problem(key: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match key:
        case "theme" if not isinstance(value, str):
            return "must be the name of a theme"
        case "speed" if value != FULL and not (number and 0 < value <= 1000):
            return f'must be rounds per second, up to 1000, or "{FULL}"'
        case "panel" if not (number and isinstance(value, int) and 1 <= value <= 9):
            return "must be the number of a panel"
        case "maximised" | "motion" if not isinstance(value, bool):
            return "must be true or false"
        case "keys" if not (isinstance(value, dict) and all(isinstance(keys, str) for keys in value.values())):
            return 'must be a table such as { "market.pause" = "p" }'
    return ""


def save(path: Path, settings: Settings, loaded: Settings) -> None:
    """Write the settings that are other than those loaded; the rest of a file stays, with what was edited meanwhile."""
    import tomlkit  # which takes a while, and the app is to start at once

    try:
        before = path.read_bytes().decode()
        document = tomlkit.parse(before.removeprefix(BYTE_ORDER_MARK))
    except FileNotFoundError:
        before, document = "", tomlkit.document()
        document.add(tomlkit.comment("What `flmarket tui` remembers; docs/tui.md describes the keys."))
    for each in fields(Settings):
        value = getattr(settings, each.name)
        if value != getattr(loaded, each.name):
            document[each.name] = FULL if value == inf else value
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_text(path) as file:
        file.write(laid_out_as(before, tomlkit.dumps(document)))


class KeptSettings:
    """The settings from one start of the app to the next.

    Attributes:
        file: where they are; None if nothing is remembered.
    """

    def __init__(self, file: Path | None) -> None:
        self.file, self.settings, self.problem = file, Settings(), ""
        if file is not None:
            try:
                self.settings = load(file)  # those found, or the defaults; the app changes them
            except SettingsError as error:
                self.problem = str(error)  # why the file cannot be used, which then stays as it is; empty if it can
        self._loaded = deepcopy(self.settings)

    def keep(self) -> None:
        """Write the settings, if there is something new to remember."""
        if self.file is None or self.problem or self.settings == self._loaded:
            return
        # A folder that cannot be written is no reason to end with an error, nor is a file that is being edited.
        with suppress(OSError, ValueError):
            save(self.file, self.settings, self._loaded)


COLORS = (
    *("primary", "secondary", "accent", "warning", "error", "success"),
    *("foreground", "background", "surface", "panel", "boost"),
)


def own_themes(folder: Path) -> Iterator[Theme | SettingsError]:
    """Yield the theme of each file, or what is wrong with the file."""
    for path in sorted(folder.glob("*.toml")):
        try:
            yield _theme(path)
        except SettingsError as error:
            yield error


def _theme(path: Path) -> Theme:
    table = read_toml(path)
    dark = table.pop("dark", True)
    if not isinstance(dark, bool):
        raise SettingsError(f"{path}: dark: must be true or false")
    for key, value in table.items():
        if key not in COLORS:
            raise SettingsError(f"{path}: {key}: unknown key; the keys are dark, {', '.join(COLORS)}")
        if not _is_color(value):
            raise SettingsError(f'{path}: {key}: must be a colour such as "#88c0d0"')
    if "primary" not in table:
        raise SettingsError(f"{path}: primary: is missing; it is the only colour that must be there")
    return Theme(name=path.stem, dark=dark, **table)


def _is_color(value: object) -> bool:
    try:
        color = Color.parse(value) if isinstance(value, str) else None
    except ColorParseError:
        return False
    return color is not None and color.a == 1 and color.ansi is None  # what Rich draws, too
