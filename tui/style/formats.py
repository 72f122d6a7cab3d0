"""Numbers, bars and texts as screens write them: in a table's columns, on several lines; and a search for words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path

from rich.cells import cell_len, set_cell_size
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


GAP = 2  # cells between two columns


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    key: str
    label: str
    right: bool = False  # its cells are aligned to the right, as numbers are
    leaves: int = 0  # its turn to be left out where there is no room for all, from 1; 0 always stays
    least: int = 0  # the width to which it is cut before others are left out; 0 for one that is not
    brief: int = 0  # the width to which it is cut when it is its turn, instead of being left out
    grows: bool = False  # whether it takes the room that the others leave


def laid_out(columns: Sequence[TableColumn], wanted: Mapping[str, int], room: int, gap: int = GAP) -> dict[str, int]:
    """Return the widths of the columns that there is room for, of which ``wanted`` shows each in full, in order."""
    wanted = {column.key: room if column.grows else wanted[column.key] for column in columns}
    widths = {column.key: min(wanted[column.key], column.least or wanted[column.key]) for column in columns}

    def over() -> int:
        return sum(widths.values()) + gap * (len(widths) - 1) - room

    for column in sorted((column for column in columns if column.leaves), key=lambda column: column.leaves):
        if over() > 0 and column.brief:
            widths[column.key] = min(widths[column.key], column.brief)
        elif over() > 0:
            del widths[column.key]
    while over() > 0 and max(widths.values(), default=0) > 1:
        widths[max(widths, key=widths.__getitem__)] -= 1
    for key, width in widths.items():
        widths[key] += max(0, min(wanted[key] - width, -over()))
    return widths


def fit(text: str, width: int) -> str:
    """Return a text padded or shortened to exactly ``width`` cells."""
    if width <= 0:
        return ""
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def end_of(text: str, width: int) -> str:
    """Return a text shortened to at most ``width`` cells, of which the end is kept."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= width:
        text = text[1:]
    return f"…{text}"


def told_apart(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most ``width`` cells, of which those that begin alike are cut where they agree."""
    found = []
    for name in names:
        alike = {other for other in names if other[: width - 1] == name[: width - 1]}
        short = fit(name, width).rstrip()
        if len(alike) > 1 and cell_len(name) > width:
            same = commonprefix([*alike])  # noqa: RUF071 - of letters
            begin = max(
                same.rfind(" ") + 1, len(same) - width // 3
            )  # of the word that differs, if that is not too long
            short = f"{name[: width // 3].rstrip()}…"
            short += fit(name[begin:], width - cell_len(short)).rstrip()
        found.append(short)
    return found


def wrapped(words: str, width: int) -> Iterator[str]:
    """Yield lines of at most ``width`` cells, or one letter, which end where a word does, unless it is longer."""
    while len(words) > 1 and cell_len(words) > width:
        most = max(1, len(set_cell_size(words, max(1, width)).rstrip()))
        end = words.rfind(" ", 0, most + 1)
        yield words[: end if end > 0 else most]
        words = words[end if end > 0 else most :].lstrip()
    yield words
