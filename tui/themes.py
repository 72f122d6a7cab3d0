"""The user's own themes: TOML files in the folder ``themes`` beside the settings, each named as its theme."""

from collections.abc import Iterator
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import Theme

from tui.settings import SettingsError, read_toml

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
