"""Pictures of a terminal one after the other, as one SVG that plays in any browser and in a README without a script."""

import re
from collections.abc import Sequence

FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")
CLIPS = re.compile(r'\s*<clipPath.*?</clipPath>| clip-path="[^"]*"', re.S)
"""Clips of text at its end; nothing overflows in a terminal, and a recording is a fifth smaller without them."""
ROOT = re.compile(r"\s*(<svg[^>]*>)(.*)</svg>\s*", re.S)


def local(svg: str) -> str:
    """Return a picture without the fonts that a browser would fetch; it shows its own fixed-width one."""
    return CLIPS.sub("", FONTS.sub("", svg))


def animated(frames: Sequence[tuple[str, float]]) -> str:
    """Return one picture that shows others in turn, for ever.

    Args:
        frames: pictures of one size, as Textual exports them, each with the seconds that it is shown.
    """
    total = sum(seconds for _, seconds in frames)
    parts, rules = [], ["@media (prefers-reduced-motion: reduce) { .frame { animation: none !important; } }"]
    root, begin = "", 0.0
    for place, (svg, seconds) in enumerate(frames):
        found = ROOT.fullmatch(re.sub(r"<!--.*?-->", "", local(svg), flags=re.S))
        if found is None:
            raise ValueError("a frame is not an SVG picture")
        root = root or found[1]
        start, stop = 100 * begin / total, 100 * (begin + seconds) / total
        begin += seconds
        hidden = "0% { visibility: hidden; } " if start else ""
        after = f" {stop:.3f}% {{ visibility: hidden; }}" if place < len(frames) - 1 else ""
        rules.append(
            f".frame-{place} {{ visibility: {'hidden' if place else 'visible'}; "
            f"animation: show-{place} {total:g}s step-end infinite; }}\n"
            f"@keyframes show-{place} {{ {hidden}{start:.3f}% {{ visibility: visible; }}{after} }}"
        )
        parts.append(f'<g class="frame frame-{place}">{found[2]}</g>')
    return f"{root}\n<style>\n{chr(10).join(rules)}\n</style>\n{chr(10).join(parts)}\n</svg>\n"
