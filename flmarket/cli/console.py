"""The consoles of all commands: results on standard output, progress and errors on standard error.

Nothing else prints, so that every text is made printable in one place; a test holds all other modules to it.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from flmarket.core.text import printable_lines

if TYPE_CHECKING:
    from rich.console import Console

    from flmarket.core.rich_console import SafeConsole
    from flmarket.core.text_table import TextTable

PIPED_WIDTH = 160  # columns of a table that goes into a file or a pipe, which have no width
_GAP = 2  # columns between two of a table that is drawn


def stdout() -> "SafeConsole":
    from flmarket.core.rich_console import SafeConsole

    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=PIPED_WIDTH)


def stderr() -> "SafeConsole":
    from flmarket.core.rich_console import SafeConsole

    return SafeConsole(stderr=True)


def result(text: str, *, end: str = "\n") -> None:
    """Print a result, unwrapped."""
    sys.stdout.write(printable_lines(text) + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """Report progress, unwrapped."""
    sys.stderr.write(printable_lines(text) + "\n")
    sys.stderr.flush()


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what a compiled library prints meanwhile: HiGHS writes lines of its own among the results."""
    import ctypes

    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def program() -> str:
    """Return what a user types to start flmarket again: its name, or its path where a shell does not find it."""
    called, found = sys.argv[0], shutil.which("flmarket")
    known = found is not None and os.path.realpath(found) == os.path.realpath(called)
    return "flmarket" if known else shlex.quote(called)


def missing(unfinished: Sequence[str], damaged: Sequence[str]) -> None:
    """Report the runs that a command's result lacks, a line each.

    That runs which are not complete are left out is what commands promise; a damaged one that was is a failure.
    """
    for text in (*unfinished, *damaged):
        note(text)
    if damaged:
        raise typer.Exit(1)


def show(header: Sequence[str], *sections: Iterable[Sequence[str]]) -> None:
    """Print a table of names and sentences; in a narrow terminal words are broken, not cut."""
    from rich.table import Column, Table

    table = Table(*(Column(name, overflow="fold") for name in header))
    for rows in sections:
        for row in rows:
            table.add_row(*row)
        table.add_section()
    stdout().print(table)


def draw(console: "Console", table: "TextTable") -> None:
    """Draw a table of numbers for a terminal.

    Columns that the terminal has no room for follow in further tables, as a number that is cut is another number.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    title = table.title
    names, *columns = zip(table.header, *table.rows, strict=True)
    longest = max((cell_len(word) for name in names for word in re.findall(r" *\S+", name)), default=0)
    room = console.width - min(longest, console.width // 3) - 2 * _GAP
    parts: list[list[tuple[Sequence[str], int]]] = []
    left = 0
    for column in columns:
        head, *cells = column
        width = min(max(map(cell_len, [*head.split(), *cells])), room - _GAP)
        if width + _GAP > left:
            parts.append([])
            left = room
        parts[-1].append((column, width))
        left -= width + _GAP
    for part in parts:
        drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
        drawn.add_column(names[0], overflow="fold")
        for (head, *_), width in part:
            drawn.add_column(head, justify="right", width=width, overflow="fold")
        for row in zip(names[1:], *(cells for (_, *cells), _ in part), strict=True):
            drawn.add_row(*row)
        console.print(drawn)
        title = ""
