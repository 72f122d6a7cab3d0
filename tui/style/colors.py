"""Colours and signs of services, runs and their states, all legible in any theme, and the look of the chosen row.

Whatever a colour shows, a sign or a word shows too.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from zlib import crc32

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.strip import Strip
from textual.widgets import OptionList

from scenarios.logs.run_state import RunState
from tui.state.known_runs import PAPER_POLICIES
from tui.textual_internals import active_app

SERIES = ("#4FC3F7", "#FFB74D", "#81C784", "#E57FDD", "#F66D64", "#FFF176", "#4DB6AC", "#FF83AD", "#699EF5", "#AB90F9")
"""Colours of services and runs, by place, before they are made legible; ``sign`` gives each a character too."""

DEEP = ("#01628E", "#884801", "#046E21", "#8F06A1", "#AC001E", "#675C00", "#006962", "#A30166", "#2146D3", "#682AC6")
"""The same hues on a light background: the others would become alike where they are darkened until they are legible."""

ANSI_SERIES = ("cyan", "yellow", "green", "magenta", "red", "blue")
"""The same in themes that leave the colours to the terminal."""


BEST = 5
FEW_IN_COLOR = "in colour: the chosen and the five most accurate"

FAINT = 1 / 3  # how far dim text moves towards the background, as long as it stays legible


def series_color(place: int, app: App[object] | None = None) -> str:
    """Return the colour of the service or run at a place; in the app, which threads give, one legible in its theme."""
    app = app or active_app.get(None)
    if app is None:
        return SERIES[place % len(SERIES)]
    colors = _series(_behind(app))
    return colors[place % len(colors)]


@lru_cache(maxsize=64)
def _series(behind: tuple[str, ...]) -> tuple[str, ...]:
    """Return the colours of services and runs on similar backgrounds."""
    if not behind:
        return ANSI_SERIES
    return tuple(legible(color, *behind) for color in (DEEP if Color.parse(behind[0]).brightness > 1 / 2 else SERIES))


def policy_places(policies: Iterable[str]) -> dict[str, int]:
    """Return the places of policies' colours, the same on every screen: the first are the paper's.

    A policy whose place another one has that is shown takes the next one, as long as there are colours.
    """
    places: dict[str, int] = {}
    others = range(len(PAPER_POLICIES), len(SERIES))
    for name in sorted({*policies}, key=lambda name: (name not in PAPER_POLICIES, name)):
        if name in PAPER_POLICIES:
            places[name] = PAPER_POLICIES.index(name)
            continue
        turn = crc32(name.encode()) % len(others)
        order = [*others[turn:], *others[:turn]]
        places[name] = next((place for place in order if place not in places.values()), order[0])
    return places


def in_color(values: Sequence[float], *chosen: int) -> set[int]:
    """Return the places of the curves that have colours: all, or of more than there are colours, these and the best.

    The ``values`` are the curves' last accuracies; NaN is one that is not known.
    """
    places = range(len(values))
    if len(values) <= len(SERIES):
        return {*places}
    known = [place for place in places if values[place] == values[place]]
    return {*chosen, *sorted(known, key=lambda place: -values[place])[:BEST]}


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


_LOOKS = {
    RunState.FAILED: ("✘", "error"),
    RunState.UNREADABLE: ("✘", "error"),
    RunState.GONE: ("✘", "error"),
    RunState.INTERRUPTED: ("■", "warning"),
    RunState.INCOMPLETE: ("▷", "warning"),
    RunState.PAUSED: ("⏸", "warning"),
    RunState.STARTING: ("…", "primary"),
    RunState.READING: ("…", "primary"),
    RunState.RUNNING: ("▶", "success"),
    RunState.WAITING: ("…", "foreground"),
    RunState.COMPLETE: ("✔", "primary"),
}


def state_sign(state: RunState) -> str:
    return _LOOKS[state][0]


def signed(state: RunState) -> str:
    return f"{state_sign(state)} {state}"


def state_style(app: App[object], state: RunState) -> Style:
    return tint(app, _LOOKS[state][1], bold=state is not RunState.WAITING)


LEGIBLE = 4.5  # the contrast that WCAG asks of text (level AA)

STEPS = 20
CHOSEN = 0.25  # how far the background of the chosen row is moved towards the theme's primary colour

TINT = 0.07
"""The part by which Textual moves the background of a table that has the focus towards the colour of text, and a bit
more."""


@lru_cache(maxsize=1024)
def legible(color: str, *backgrounds: str) -> str:
    """Return a colour, moved towards white or black as little as it takes to read it on similar backgrounds."""
    start = Color.parse(color)
    goal = max("#FFFFFF", "#000000", key=lambda ink: min(contrast(ink, other) for other in backgrounds))
    for step in range(STEPS):
        mixed = start.blend(Color.parse(goal), step / STEPS).hex
        if all(contrast(mixed, other) >= LEGIBLE for other in backgrounds):
            return mixed
    return goal


def tinted(background: str, foreground: str) -> str:
    """Return the background of a table that has the focus."""
    return Color.parse(background).blend(Color.parse(foreground), TINT).hex


def with_legible_text(variables: Mapping[str, str], *, colors: bool = True) -> dict[str, str]:
    """Return a theme's variables with legible text; without its colours, the chosen row is in reverse video."""
    changed = dict(variables)
    foreground, background = variables["foreground"], variables["background"]
    behind = [background, variables["surface"], variables["panel"]]
    ours = all(color.startswith("#") for color in (foreground, *behind))  # else the terminal chooses
    if ours:
        chosen = Color.parse(background).blend(Color.parse(variables["primary"]), CHOSEN).hex
        behind += [*(tinted(color, foreground) for color in behind), chosen]
        plainly = legible(foreground, *behind)
        changed |= {name: plainly for name, color in variables.items() if color == foreground}
        changed |= _cursor(plainly, chosen, "none", tinted(background, variables["primary"]))
    if not (ours and colors):
        changed |= _cursor(foreground, background, "reverse", background)
    return changed


def _cursor(foreground: str, background: str, style: str, blurred: str) -> dict[str, str]:
    cursor = {"foreground": foreground, "background": background, "text-style": style}
    named = {f"block-cursor-{name}": value for name, value in cursor.items()}
    faint = {"foreground": foreground, "background": blurred, "text-style": "none"}
    return named | {f"block-cursor-blurred-{name}": value for name, value in faint.items()}


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG 2 computes it: 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@lru_cache(maxsize=1024)
def _luminance(color: str) -> float:
    parts = Color.parse(color).normalized
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


BAR = "▌"
REVERSE = Style(reverse=True)


def selection(app: App[object]) -> Style:
    """Return what is laid over the text of the chosen row: the theme's cursor, as ``with_legible_text`` sets it.

    Where there are no colours of our own, as with NO_COLOR and in ANSI themes, that is reverse video.
    """
    variables = app.theme_variables
    if variables["block-cursor-text-style"] == "reverse":
        return REVERSE
    return Style(bgcolor=variables["block-cursor-background"])


def bar(app: App[object]) -> Style:
    chosen, variables = selection(app), app.theme_variables
    if chosen is REVERSE:
        return Style()
    return Style(color=legible(variables["primary"], variables["block-cursor-background"]))


def over(segments: Iterable[Segment], base: Style, chosen: Style) -> list[Segment]:
    """Return the segments of the chosen row; in reverse video all of it is in one colour."""
    if chosen is REVERSE:
        return [Segment(text, base + REVERSE) for text, _, _ in segments]
    return [Segment(text, (base + style if style else base) + chosen) for text, style, _ in segments]


def _option(style: Style | None) -> object:
    return style.meta.get("option") if style else None


def barred(options: OptionList, strip: Strip) -> Strip:
    """Return a line of a list; of the chosen option, with the bar in place of its first cell if the list has focus."""
    chosen = options.highlighted
    if not options.has_focus or chosen is None or all(_option(style) != chosen for _, style, _ in strip):
        return strip
    first, rest = strip.divide([1, strip.cell_length])
    style = bar(options.app)
    return Strip([*(Segment(BAR, (old or Style()) + style) for _, old, _ in first), *rest], strip.cell_length)
