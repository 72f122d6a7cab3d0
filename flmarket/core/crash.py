"""The outermost guard of every process: what a user can meet is a sentence and an exit status, a defect its traceback.

Exit status: 1 a run failed, 2 bad input, 70 a defect of flmarket, 130 interrupted.
"""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress

from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import version
from flmarket.core.plugin_errors import describe, place
from flmarket.core.text import printable_lines

FAILED, BAD_INPUT, DEFECT, INTERRUPTED = 1, 2, 70, 130


def guarded(
    work: Callable[[], object],  # returns the exit status, or None for 0; what it raises becomes one
    say: Callable[[str], None] | None = None,  # prints a sentence; on standard error if not given
) -> int:
    """Do a process's work and return its exit status."""
    text, status = "", 0
    try:
        status = _status(work())
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as end:
        status = _status(end.code)
        text = end.code if isinstance(end.code, str) else ""
    except BrokenPipeError:  # the process that this one works for has ended
        status = FAILED
    except Exception as error:
        text, status = outcome(error)
    if text:
        with suppress(OSError):
            (say or _say)(text)
    return status


def outcome(error: Exception) -> tuple[str, int]:
    """Return what is said of an exception that escaped, and the exit status."""
    match error:
        case InputError():
            return printable_lines(str(error)), BAD_INPUT
        case RunError():
            return printable_lines(str(error)), FAILED
        case OSError(filename=str() | os.PathLike() as name):
            return printable_lines(f"{os.fspath(name)}: {error.strerror}"), BAD_INPUT
        case _ if is_out_of_memory(error):
            return printable_lines(
                f"out of memory: {describe(error)}; do less at a time, or play a smaller market"
            ), FAILED
        case OSError(errno=int()):  # such as a full disk, or too many open files
            return str(error.strerror), FAILED
    if where := place(error):
        return printable_lines(f"{where}: {describe(error)}"), FAILED
    return defect(error), DEFECT


def is_out_of_memory(error: Exception) -> bool:
    """Return whether the machine has too little memory; torch has no exception of its own for that of the CPU."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and re.search("out of memory|can't allocate memory", str(error)) is not None
    )


def defect(error: BaseException) -> str:
    """Return the traceback of a defect of flmarket, and what to do with it."""
    import platform
    import traceback

    what = printable_lines("".join(traceback.format_exception(error)))
    system = f"flmarket {version()}, Python {platform.python_version()}, {platform.platform()}"
    return f"{what}This is a defect of flmarket. Please report it with these lines: {system}"


def _status(code: object) -> int:
    if code is None:
        return 0
    return code if isinstance(code, int) else FAILED


def _say(text: str) -> None:
    print(printable_lines(text), file=sys.stderr, flush=True)  # noqa: T201 - the last word of a process
