"""Numbers, bars and texts as screens write them, and whether a text has the words that one looks for."""

import re
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text


def bar(fraction: float, width: int, mark: float | None = None) -> str:
    """Return a bar, filled up to a fraction; ``mark`` is a fraction to mark on it, such as a target."""
    full = round(max(0.0, min(1.0, fraction)) * width)
    cells = list("━" * full + "┄" * (width - full))
    if mark is not None and width:
        cells[min(width - 1, int(mark * width))] = "┃" if fraction >= mark else "│"
    return "".join(cells)


BLOCKS = "▁▂▃▄▅▆▇█"


def blocks(shares: Sequence[float]) -> str:
    """Return a cell for each share, as high as it is, of 1 at most."""
    return "".join(BLOCKS[max(0, min(len(BLOCKS) - 1, int(share * len(BLOCKS))))] for share in shares)


def percent(fraction: float) -> str:
    """Write a fraction in per cent, without the sign."""
    return f"{100 * fraction:.1f}"


def seconds(amount: float) -> str:
    """Write a simulated time."""
    if amount < 10:
        return f"{amount:.2f} s"
    if amount < 600:
        return f"{amount:.1f} s"
    minutes, rest = divmod(int(amount), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def per_second(rate: float) -> str:
    """Return a rate as a plain number."""
    return f"{rate:.3g}" if rate < 100 else f"{rate:,.0f}"


def shortened(text: Text, width: int) -> Text:
    """Return a text of at most ``width`` cells, which ends in a whole word if that fills half of them."""
    if text.cell_len <= width:
        return text
    text = text.copy()
    text.truncate(max(0, width - 1), overflow="crop")
    words = text.plain.rpartition(" ")[0].rstrip(" ,;:·")
    if cell_len(words) >= width / 2:
        text.right_crop(len(text) - len(words))
    return text.append("…")


def plain(content: str, style: Style | str = "") -> Text:
    """Return a text without markup: brackets in a scenario's names stay as they are."""
    return Text(content, style, no_wrap=True, overflow="ellipsis", end="")


def within(directory: Path | str, words: str) -> str:
    """Return what is said of a run where the screen already names its directory: without it."""
    return words.replace(f"{directory}/", "").replace(f"{directory}: ", "")


def matches(text: str, words: Sequence[str]) -> bool:
    """Whether a text has all words that are looked for, which are in lower case; a whole number is not part of one."""
    text = text.lower()
    return all(re.search(rf"(?<![\d.]){word}(?!\.?\d)", text) if word.isdecimal() else word in text for word in words)
