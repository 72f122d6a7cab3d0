"""The terminal that the app is in: it may be wanted back, go away, or send what is no text."""

import asyncio
import codecs
import os
import select
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from textual.app import App, SuspendNotSupported
from textual.drivers import linux_driver

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def ignore_bytes() -> None:
    """Let Textual ignore input that is no UTF-8, with which it would end the app: there is nothing else to hook into.

    To be called before an app runs.
    """
    strict = codecs.getincrementaldecoder("utf-8")
    linux_driver.getincrementaldecoder = lambda _: partial(strict, "ignore")  # type: ignore[attr-defined]


def heed(app: App[Any]) -> None:
    """Let SIGTERM, SIGHUP and the end of the terminal end an app that has begun to run, and SIGTSTP suspend it."""
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        app.exit(return_code=128 + number)

    def watch() -> None:
        """Wait for the end of the terminal, which Textual does not notice: nohup has SIGHUP ignored."""
        terminal = select.poll()
        terminal.register(0, 0)
        if any(event & select.POLLHUP for _, event in terminal.poll()):
            with suppress(RuntimeError):  # the app has ended meanwhile
                loop.call_soon_threadsafe(end, signal.SIGHUP)

    for number in _heeded(_ENDING):
        loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGTSTP, suspend, app)
    # Textual's handler would make the terminal's state of now the one to restore; timeout(1) sends this with SIGTERM.
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    threading.Thread(target=watch, daemon=True).start()


def suspend(app: App[Any]) -> None:
    """Stop this process, and those that started it (make, a script), until the shell continues them.

    The runs play on until what they tell fills their pipes, then they wait. A signal that ends a suspended app does so
    at once: the terminal is restored, and the runs end with their input.
    """
    with suppress(SuspendNotSupported), app.suspend(), by_default(signal.SIGTSTP, *_ENDING):
        os.kill(0, signal.SIGTSTP)
        with suppress(termios.error):  # continued in the background, it stops here again
            termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0))


@contextmanager
def by_default(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals do what they do to any process, except for those that are ignored."""
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in _heeded(numbers)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _heeded(numbers: tuple[signal.Signals, ...]) -> list[signal.Signals]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
