"""The outermost guard of every process: whatever goes wrong ends in one line and an exit status, never in a traceback.

A user's mistake and a run's failure say what they are (``fl.errors``). What nobody foresaw is a defect of flmarket: a
report of it is written for whoever mends it, and the line names the file.
"""

import errno
import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from fl.errors import InputError, RunError
from fl.installation import version
from fl.printable import printable, printable_lines

FAILED, BAD_INPUT, DEFECT, INTERRUPTED = 1, 2, 70, 130

_LONGEST_MESSAGE = 200
_MOST_FRAMES = 200
_PATHS = {errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP}
"""What is wrong with a path that a user named."""
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What is wrong with the machine."""


def guarded(
    work: Callable[[], object],  # returns the exit status, or None for 0; what it raises becomes one
    say: Callable[[str], None] | None = None,  # prints a line; on standard error if not given
) -> int:
    """Do a process's work and return its exit status."""
    line, status = "", 0
    try:
        status = _status(work())
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as end:
        status = _status(end.code)
        line = end.code if isinstance(end.code, str) else ""
    except BaseException as error:
        line, status = outcome(error)
    if line:
        (say or _say)(line)
    return status


def outcome(error: BaseException) -> tuple[str, int]:
    """Return the line that reports what escaped, and the exit status; write a crash report of a defect."""
    match error:
        case InputError():
            return printable_lines(str(error)), BAD_INPUT
        case RunError():
            return printable_lines(str(error)), FAILED
        case OSError() if error.errno in _PATHS and error.filename is not None:
            return f"{_place(error)}{error.strerror}", BAD_INPUT
        case OSError() if error.errno in _PATHS | _MACHINE:
            return f"{_place(error)}{error.strerror}; the same command continues from what is there", FAILED
    return crash_line(error), DEFECT


def _place(error: OSError) -> str:
    if isinstance(error.filename, str | bytes | os.PathLike):
        return f"{_shortened(os.fsdecode(error.filename))}: "
    return ""


def crash_line(error: BaseException) -> str:
    """Write a crash report; return the line that names it and says how to report it."""
    path = _write(_report(error))
    what = _described(error)
    if path is None:
        return f"this is a defect of flmarket: {what}; please report it (no crash report could be written)"
    return (
        f"this is a defect of flmarket: {what}; please report it with the crash report {printable(str(path))} "
        "(traceback, versions and command line; look it through first)"
    )


def _report(error: BaseException) -> str:
    """Return a crash report: where the error came from, not what the data held."""
    lines = [
        f"flmarket {version()}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {printable(shlex.join(sys.orig_argv))}",
        *_versions(),
        "",
        *_trace(error),
    ]
    return "\n".join(lines) + "\n"


def _versions() -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    for name in ("numpy", "torch", "pandas", "pydantic", "simpy", "typer", "rich", "textual"):
        with suppress(PackageNotFoundError):
            yield f"{name} {installed(name)}"


def _trace(error: BaseException) -> Iterator[str]:
    """Yield the frames of an error and of those that led to it, the first one first."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in chain:
        chain.append(found)
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    for part in reversed(chain):
        frames = traceback.extract_tb(part.__traceback__)
        if len(frames) > _MOST_FRAMES:  # endless recursion
            yield f"  ({len(frames) - _MOST_FRAMES} frames are left out)"
        for frame in frames[-_MOST_FRAMES:]:
            yield f"  {printable(frame.filename)}:{frame.lineno} in {frame.name}: {printable(frame.line or '')}"
        yield _described(part)


def _described(error: BaseException) -> str:
    """Return an exception's type and the beginning of its message, which may quote data."""
    try:
        message = printable(" ".join(str(error).split()))
    except Exception:
        message = ""
    name = type(error).__name__
    return f"{name}: {_shortened(message)}" if message else name


def _shortened(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[: _LONGEST_MESSAGE - 3]}..."


def _write(text: str) -> Path | None:
    """Write a crash report into the user's folder for such things, else into that for temporary files."""
    prefix = time.strftime("crash-%Y%m%d-%H%M%S-")
    for folder in (_folder, _temporary):
        with suppress(OSError, RuntimeError, ValueError):
            descriptor, path = tempfile.mkstemp(".txt", prefix, folder())
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return Path(path)
    return None


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "flmarket" / "crashes"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _temporary() -> Path:
    return Path(tempfile.gettempdir())


def _status(code: object) -> int:
    if code is None:
        return 0
    return code if isinstance(code, int) else FAILED


def _say(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        print(printable_lines(line), file=sys.stderr, flush=True)  # noqa: T201 - the last word of a process
