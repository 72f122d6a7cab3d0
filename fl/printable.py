"""Foreign text made fit to be shown: names, paths, messages and cells that somebody else wrote.

A terminal acts on control characters, an encoder fails at half of a surrogate pair, and an override of the writing
direction shows a text in another order than it has. What is shown goes through ``printable``; what goes into the cells
of a spreadsheet must not begin a formula.
"""

import re


def printable(text: str) -> str:
    r"""Return a text on one line, with an escape (``\x1b``) for each character that is not shown as itself.

    These are control and format characters (among them those that override the writing direction), line ends, halves of
    surrogate pairs, and blanks other than the space.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_lines(text: str) -> str:
    """Return a text as ``printable`` does, but leave its line ends."""
    return "\n".join(map(printable, text.split("\n")))


_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what the cell of a formula begins with, in common spreadsheets


def cell(text: str) -> str:
    """Return a text for a cell of CSV: printable, and with an apostrophe before what would begin a formula."""
    shown = printable(text)
    return f"'{shown}" if text.startswith(_FORMULA) else shown


_FOREIGN = re.compile(
    r"""(?:^|,)"?[=+@]"""
    # A number may begin with a minus; a formula may, too.
    r"""|(?:^|,)"?-(?!\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:,|$))"""
    r"""|[^\x20-\x7e]"""
)


def is_plain_row(line: str) -> bool:
    """Whether a line of CSV, without its end, has ASCII alone and no cell that begins a formula."""
    return _FOREIGN.search(line) is None


def is_plain(text: str) -> bool:
    """Whether the text of one cell is printable and begins no formula. A number may begin with a minus."""
    return text.isprintable() and (not text.startswith(_FORMULA) or is_plain_row(text))
