"""Plain text of all commands: results on standard output, progress on standard error.

Nothing else prints but Rich's console (``flmarket.core.rich_console``), so that every text is made printable; a test
holds all other modules to it.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from flmarket.core.text import printable_lines


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
    import ctypes  # takes long to import

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


@contextmanager
def interruptible(rest: str) -> Iterator[None]:
    """Say at Ctrl-C what the same command does when it is given again, as results are kept."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; the same command {rest}")
        raise


def command_line() -> str:
    """Return the command that was given, as what it makes records it."""
    return shlex.join(["flmarket", *sys.argv[1:]])


def program() -> str:
    """Return what a user types to start flmarket again: its name, or its path where a shell does not find it."""
    called, on_path = sys.argv[0], shutil.which("flmarket")
    known = on_path is not None and os.path.realpath(on_path) == os.path.realpath(called)
    return "flmarket" if known else shlex.quote(called)


def on_the_screen(run: Path, round_: int, plugins: Sequence[Path]) -> str:
    """Return what to type after the program's name to see a round of a run."""
    loaded = (word for file in plugins for word in ("--plugin", str(file)))
    return shlex.join(["replay", str(run), "--round", str(round_), *loaded])


def missing(unfinished: Sequence[str], damaged: Sequence[str]) -> None:
    """Report the runs and measures that a command's result lacks, a line each.

    That runs which are not complete are left out is what commands promise; a damaged one, or a measure, is a failure.
    """
    for text in (*unfinished, *damaged):
        note(text)
    if damaged:
        raise typer.Exit(1)
