"""The terminal that the app is in: it may be wanted back, go away, or send what is no text."""

import asyncio
import os
import select
import shlex
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App, SuspendNotSupported
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TerminalDriver(LinuxDriver):
    """A terminal, whose signals are heeded from the moment on in which it is the app's."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        heed(app)


def heed(app: App[Any]) -> None:
    """Let ``_ENDING`` and the end of the terminal end an app that has begun to run, and SIGTSTP suspend it."""
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        app.exit(return_code=128 + number)

    def watch() -> None:
        """Wait for the end of the terminal, which no signal tells where SIGHUP is ignored (nohup), nor Textual."""
        terminal = select.poll()
        terminal.register(0, 0)
        if any(event & select.POLLHUP for _, event in terminal.poll()):
            with suppress(RuntimeError):  # the app has ended meanwhile
                loop.call_soon_threadsafe(end, signal.SIGHUP)

    threading.Thread(target=watch, daemon=True).start()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGTSTP, _suspend, app)
    # timeout(1) sends it with SIGTERM; Textual would take the terminal's state of now for the one to restore.
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


def _suspend(app: App[Any]) -> None:
    """Stop, with what started the app (make, a script), until the shell continues it; a signal may end it meanwhile."""
    with app.suspend(), by_default(signal.SIGTSTP, *_ENDING):
        os.kill(0, signal.SIGTSTP)
        with suppress(termios.error):  # continued in the background, it stops here again
            termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0))


@contextmanager
def by_default(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals do what they do to any process, unless they are ignored."""
    handlers = {
        each: signal.signal(each, signal.SIG_DFL) for each in numbers if signal.getsignal(each) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def edit(app: App[None], path: Path) -> bool:
    """Edit a file in the editor that VISUAL or EDITOR names; tell the user, and return False, if that cannot be."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        app.notify("Set VISUAL or EDITOR to the command of your editor.", severity="warning", timeout=5)
        return False
    try:
        with app.suspend(), by_default(signal.SIGTSTP):  # the editor may be suspended
            subprocess.run([*editor, str(path)], check=False)  # noqa: S603 - the user's own command
    except SuspendNotSupported:
        app.notify("No editor can be opened from here; press e for the form.", severity="warning", timeout=5)
        return False
    except OSError as error:
        app.notify(f"{editor[0]}: cannot be started: {error.strerror}", severity="error", timeout=6)
        return False
    return True


class Printable(LineFilter):
    """Takes the place of characters that are not shown as themselves, without moving the others.

    Segments without a style get the empty one, which looks the same: Textual's filter for NO_COLOR fails on them.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, printable, as wide as they were, and all with a style."""
        return [
            segment
            if segment.style is not None and segment.text.isprintable()
            else Segment("".join(map(_shown, segment.text)), segment.style or Style.null(), segment.control)
            for segment in segments
        ]


def _shown(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" * cell_len(character)
