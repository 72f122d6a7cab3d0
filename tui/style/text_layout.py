"""Text in a room: the columns of a table, of which some may be left out, and words on several lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

GAP = 2  # cells between two columns


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    key: str
    label: str
    right: bool = False  # its cells are aligned to the right, as numbers are
    leaves: int = 0  # its turn to be left out where there is no room for all, from 1; 0 always stays
    least: int = 0  # the width to which it is cut before others are left out; 0 for one that is not
    grows: bool = False  # whether it takes the room that the others leave


def laid_out(columns: Sequence[TableColumn], wanted: Mapping[str, int], room: int, gap: int = GAP) -> dict[str, int]:
    """Return the widths of the columns that there is room for, of which ``wanted`` shows each in full, in order."""
    wanted = {column.key: room if column.grows else wanted[column.key] for column in columns}
    widths = {column.key: min(wanted[column.key], column.least or wanted[column.key]) for column in columns}

    def over() -> int:
        return sum(widths.values()) + gap * (len(widths) - 1) - room

    for column in sorted((column for column in columns if column.leaves), key=lambda column: column.leaves):
        if over() > 0:
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


def wrapped(words: str, width: int) -> Iterator[str]:
    """Yield lines of at most ``width`` cells, or one letter, which end where a word does, unless it is longer."""
    while len(words) > 1 and cell_len(words) > width:
        most = max(1, len(set_cell_size(words, max(1, width)).rstrip()))
        end = words.rfind(" ", 0, most + 1)
        yield words[: end if end > 0 else most]
        words = words[end if end > 0 else most :].lstrip()
    yield words
