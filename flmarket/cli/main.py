"""The door of the ``flmarket`` command line: Ctrl-C and other signals that end it, and exit statuses.

Exit status: 0 done, 1 a run failed, 2 bad input, 70 a defect of flmarket, 130 interrupted, 143 ended by SIGTERM, 129
ended by SIGHUP. Nothing but ``main`` is imported before Ctrl-C is taken care of: what comes before that, the start of
Python itself, cannot be kept from showing a traceback.
"""

import io
import os
import select
import signal
import sys
from typing import Any, TextIO


def main() -> None:
    if sys.platform == "win32":
        sys.stderr.write("flmarket runs on Linux, macOS and WSL, not on Windows itself\n")
        sys.exit(2)
    try:
        _on_ctrl_c(_end)
    except KeyboardInterrupt:  # before it was set
        _end(signal.SIGINT)
    from flmarket.core.crash import guarded

    sys.stdout, sys.stderr = _prepared(sys.stdout), _prepared(sys.stderr)
    sys.exit(guarded(_run, _say))


def _prepared(stream: TextIO | None) -> TextIO:
    """Let a stream that is closed take everything, and one of another encoding show what it lacks by escapes."""
    if stream is None:
        return open(os.devnull, "w")  # noqa: PTH123 - until the process ends
    is_ours = stream in (sys.__stdout__, sys.__stderr__)  # not of a program that runs this in its own process
    if not is_ours or not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = io.BufferedWriter(_Outlet(stream.fileno(), "wb", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering)


class _Outlet(io.FileIO):
    """Standard output or error. That its reader, such as ``head``, has seen enough is no failure of what is done."""

    def write(self, content: Any, /) -> int:
        try:
            while (written := super().write(content)) is None:  # it is full, and does not block
                select.select([], [self], [])
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # takes what is still to come
            if isinstance(error, BrokenPipeError) or self.fileno() != 1:
                return len(content)
            from flmarket.core.errors import RunError

            raise RunError(f"standard output cannot be written: {error.strerror}") from error
        return written


def _run() -> object:
    from flmarket.cli.program import run_arguments

    ended: list[int] = []

    def end(number: int, _: object) -> None:
        """End as Ctrl-C does, and only once: a shell passes on a SIGHUP that the terminal has sent already."""
        if not ended:
            ended.append(128 + number)
            raise KeyboardInterrupt

    _on_ctrl_c(signal.default_int_handler)
    others = [it for it in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(it) is signal.SIG_DFL]  # nohup's is not
    for number in others:
        signal.signal(number, end)
    status = None
    try:
        status = run_arguments()
        sys.stdout.flush()
    except KeyboardInterrupt:
        if not ended:
            raise
    finally:
        for number in others:
            signal.signal(number, _end)
        _on_ctrl_c(_end)
    return ended[0] if ended else status


def _on_ctrl_c(handler: "signal._HANDLER") -> None:
    """Set what Ctrl-C does, unless the process was started with it ignored."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end):
        signal.signal(signal.SIGINT, handler)


def _end(number: int, *_: object) -> None:
    """End the process at once: while it is imported nothing has begun, and while Python takes it down all is done."""
    os._exit(128 + number)


def _say(line: str) -> None:
    from flmarket.core.rich_console import stderr

    stderr().print(line, style="red", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
