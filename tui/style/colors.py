"""Colours of the theme, of services and of runs. Whatever a colour shows, a sign or a word shows too."""

from functools import lru_cache

from rich.style import Style
from textual.app import App
from textual.color import Color

from tui.style.contrast import legible, tinted
from tui.textual_internals import active_app

SERIES = ("#4FC3F7", "#FFB74D", "#81C784", "#BA68C8", "#E57373", "#FFF176", "#4DB6AC", "#F06292", "#9FA8DA", "#A1887F")
"""Colours of services and runs, by place, before they are made legible; ``sign`` gives each a character too."""

ANSI_SERIES = ("cyan", "yellow", "green", "magenta", "red", "blue")
"""The same in themes that leave the colours to the terminal."""

FADE = 0.5  # how far the band of a curve moves towards the background

FAINT = 1 / 3  # how far dim text moves towards the background, as long as it stays legible


def series_color(place: int, app: App[object] | None = None) -> str:
    """Return the colour of the service or run at a place; in the app, which threads give, one legible in its theme."""
    app = app or active_app.get(None)
    if app is None:
        return SERIES[place % len(SERIES)]
    behind = _behind(app)
    return legible(SERIES[place % len(SERIES)], *behind) if behind else ANSI_SERIES[place % len(ANSI_SERIES)]


def faint_color(place: int) -> str:
    """Return a fainter colour of a service or run, for the band of its curve; the same one in ANSI themes."""
    color, app = series_color(place), active_app.get(None)
    behind = _behind(app) if app is not None else ()
    return Color.parse(color).blend(Color.parse(behind[0]), FADE).hex if behind else color


def sign(place: int) -> str:
    """Return the character of the service or run at a place: 1 to 9, then letters."""
    return "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[place % 61]


def tint(app: App[object], name: str, *, bold: bool = False, dim: bool = False) -> Style:
    """Return a colour of the theme as a style for text that is legible, also where it is dim."""
    return _style(app.theme_variables.get(name, ""), _behind(app), bold, dim)


@lru_cache(maxsize=1024)
def _style(color: str, behind: tuple[str, ...], bold: bool, dim: bool) -> Style:
    if not behind or not color.startswith("#"):  # the terminal chooses
        ansi = color.removeprefix("ansi_") if color.startswith("ansi_") else None
        return Style(color=ansi, bold=bold or None, dim=dim or None)
    if dim:
        color = Color.parse(color).blend(Color.parse(behind[0]), FAINT).hex
    return Style(color=legible(color, *behind), bold=bold or None)


def _behind(app: App[object]) -> tuple[str, ...]:
    """Return the backgrounds of text in an app's theme; none where the terminal chooses the colours."""
    names = ("background", "surface", "foreground", "block-cursor-background")
    return _backgrounds(*(app.theme_variables.get(name, "") for name in names))


@lru_cache(maxsize=64)
def _backgrounds(background: str, surface: str, foreground: str, chosen: str) -> tuple[str, ...]:
    if not all(color.startswith("#") for color in (background, surface, foreground, chosen)):
        return ()
    return background, surface, tinted(surface, foreground), chosen
