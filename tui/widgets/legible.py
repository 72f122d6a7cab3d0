"""Colours that can be read: the contrast of text with what is behind it, as WCAG 2 computes it."""

from functools import lru_cache

from textual.color import Color

LEGIBLE = 4.5
"""The contrast that WCAG asks of text (level AA)."""

STEPS = 20


@lru_cache(maxsize=1024)
def legible(color: str, *backgrounds: str) -> str:
    """Return a colour, moved towards white or black as little as it takes to read it on all backgrounds.

    Args:
        color: in CSS's hexadecimal notation, as are the backgrounds.
        backgrounds: similar ones, all dark or all light; at least one.
    """
    behind = [Color.parse(background) for background in backgrounds]
    start = Color.parse(color)
    ends = (Color(255, 255, 255), Color(0, 0, 0))
    goal = max(ends, key=lambda end: min(contrast(end, other) for other in behind))
    for step in range(STEPS):
        mixed = start.blend(goal, step / STEPS)
        if all(contrast(mixed, other) >= LEGIBLE for other in behind):
            return mixed.hex
    return goal.hex


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours: 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
