"""What went wrong in code that is not flmarket's own: plug-ins may raise anything, at any time.

Whoever calls a plug-in does so in ``Foreign``, and describes what it raised with these functions. They never raise: an
exception's own ``repr`` and ``str`` are foreign code, too.
"""

import os
import signal
import sysconfig
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType

from fl.installation import PACKAGES, ROOT


class Foreign:
    """A context for foreign code: whatever that raises, SystemExit too, becomes an error of flmarket's.

    Ctrl-C passes, and so do the errors that the code may raise on purpose. A process that the code has forked ends
    where it would leave it: flmarket goes on in one process. Light: it surrounds every decision.
    """

    __slots__ = ("_passing", "_process", "_told")

    def __init__(
        self,
        told: Callable[[BaseException], Exception],  # returns the error to raise instead of what the code raised
        *passing: type[BaseException],  # the errors that pass as they are
    ) -> None:
        self._told = told
        self._passing = passing
        self._process = 0

    def __enter__(self) -> None:
        self._process = os.getpid()

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        """Raise the error that ``told`` returns, if there is anything to tell."""
        if os.getpid() != self._process:
            os._exit(1)
        if error is not None and not isinstance(error, self._passing) and not _by_ctrl_c(error):
            raise self._told(error) from error


def _by_ctrl_c(error: BaseException) -> bool:
    """Return whether an exception may be Ctrl-C, which does not reach a process whose user is elsewhere."""
    return isinstance(error, KeyboardInterrupt) and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def represent(error: BaseException) -> str:
    """Return an exception as Python writes it, ``IndexError('list index out of range')``, on one line."""
    try:
        return " ".join(repr(error).split())
    except BaseException as another:  # the exception is the plug-in's own
        return _undescribable(error, another)


def describe(error: BaseException) -> str:
    """Return an exception's type and message on one line: ``ModuleNotFoundError: No module named 'x'``."""
    try:
        message = " ".join(str(error).split())
    except BaseException as another:  # the exception is the plug-in's own
        return _undescribable(error, another)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def refusal(error: BaseException) -> str:
    """Return why a plug-in did not take its options: the message of a TypeError or ValueError, else also the type."""
    try:
        return str(error) if isinstance(error, TypeError | ValueError) and str(error) else describe(error)
    except BaseException:  # the exception is the plug-in's own
        return describe(error)


def blame(error: BaseException) -> str:
    """Return the place of an exception in a plug-in, as messages end with it: `` (mine.py:12)``.

    That is the last frame in code that belongs neither to flmarket nor to an installed package; nothing where there is
    none.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append((error.filename, error.lineno))
    own = [(file, line) for file, line in frames if not file.startswith("<frozen") and not _is_installed(file)]
    return f" ({own[-1][0]}:{own[-1][1]})" if own else ""


def _undescribable(error: BaseException, another: BaseException) -> str:
    """Return what is known of an exception that raises another one when it is asked what it is."""
    return f"{type(error).__name__} (which raises {type(another).__name__} when it is printed)"


@cache
def _is_installed(file: str) -> bool:
    """Return whether a file belongs to flmarket, the standard library, or an installed package."""
    paths = sysconfig.get_paths()
    libraries = [Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(folder) for folder in (*libraries, *(ROOT / name for name in PACKAGES)))
