"""Colours that can be read: the contrast of text with what is behind it, as WCAG 2 computes it."""

from collections.abc import Mapping
from functools import lru_cache

from textual.color import Color

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
    """Return the contrast of two colours: 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@lru_cache(maxsize=1024)
def _luminance(color: str) -> float:
    parts = Color.parse(color).normalized
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
