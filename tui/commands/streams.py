"""Standard output and error that fail in a way that can be reported: closed by the reader, or onto a full disk."""

import ctypes
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from fl.errors import RunError

_OUT, _ERR = 1, 2


class OutputError(RunError):
    """Standard output cannot take the results."""


class _Results(io.TextIOWrapper):
    """Standard output: a write that fails is an OutputError."""

    def write(self, text: str) -> int:
        return int(_or_output_error(lambda: super(_Results, self).write(text)))

    def flush(self) -> None:
        _or_output_error(super().flush)


class _Progress(io.TextIOWrapper):
    """Standard error: a write that fails is forgotten, as progress is not worth a run."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            _discard(_ERR)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            _discard(_ERR)


def guard_streams() -> None:
    """Let a failing standard output raise an OutputError from now on. Its descriptors become /dev/null where closed."""
    closed = sys.stdout is None
    for descriptor in (0, _OUT, _ERR):  # else the next file that is opened would be one of them
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stderr = sys.stderr or open(_ERR, "w", closefd=False)  # noqa: SIM115 - a descriptor
    if closed:
        raise OutputError("standard output is closed; send it to a file, or to /dev/null")
    sys.stdout = sys.__stdout__ = _replaced(sys.stdout, _Results)  # type: ignore[misc,assignment]
    sys.stderr = sys.__stderr__ = _replaced(sys.stderr, _Progress)  # type: ignore[misc,assignment]


def finish_streams() -> None:
    """Write what is still buffered."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _replaced(stream: TextIO, kind: type[io.TextIOWrapper]) -> TextIO:
    """Return a stream of another kind in place of one of the process's own; others, such as a test's, stay."""
    if type(stream) is not io.TextIOWrapper:
        return stream
    settings: dict[str, Any] = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
    encoding = stream.encoding
    # A name that the terminal's encoding cannot write is shown by its escapes.
    return kind(stream.detach(), encoding=encoding, errors="backslashreplace", **settings)


def _or_output_error(write: Callable[[], Any]) -> Any:
    try:
        return write()
    except BrokenPipeError:
        _discard(_OUT)
        raise OutputError("standard output was closed by its reader before everything was written") from None
    except OSError as error:
        _discard(_OUT)
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None


def _discard(descriptor: int) -> None:
    """Let what is still to be written vanish: Python tries again when it ends, and would report that it cannot."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what compiled libraries print meanwhile: HiGHS writes some lines of its own among the results.

    What this process itself prints is dropped, too.
    """
    sys.stdout.flush()
    kept, nowhere = os.dup(_OUT), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUT)
    try:
        yield
    finally:
        with suppress(OSError, AttributeError, TypeError):  # where C's own buffer cannot be reached
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, _OUT)
        os.close(kept)
        os.close(nowhere)
