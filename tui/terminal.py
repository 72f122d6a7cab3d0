"""The terminal that the app is in: it may be wanted back, go away, or send what is no text."""

import asyncio
import os
import select
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

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
    handlers = {it: signal.signal(it, signal.SIG_DFL) for it in numbers if signal.getsignal(it) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
