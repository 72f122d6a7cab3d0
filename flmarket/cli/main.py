"""The door of the ``flmarket`` command line: Ctrl-C and other signals that end it, and exit statuses.

Exit status: 0 done, 1 a run failed, 2 bad input, 70 a defect of flmarket, 130 interrupted, 143 ended by SIGTERM, 129
ended by SIGHUP. Nothing but ``main`` is imported before Ctrl-C is taken care of: what comes before that, the start of
Python itself, cannot be kept from showing a traceback.
"""

import io
import os
import signal
import sys


def main() -> None:
    if sys.platform == "win32":
        sys.stderr.write("flmarket runs on Linux, macOS and WSL, not on Windows itself\n")
        sys.exit(2)
    try:
        _on_ctrl_c(_end)
    except KeyboardInterrupt:  # before it was set
        _end(signal.SIGINT)
    try:
        from flmarket.core.crash import guarded
    except ImportError as error:  # something else on Python's path is called flmarket
        sys.stderr.write(f"flmarket cannot start: Python finds another package named 'flmarket': {error}\n")
        sys.exit(2)
    _prepare_streams()
    sys.exit(_flushed(guarded(_run, _say)))


def _prepare_streams() -> None:
    """Let streams that are closed take everything, and those of another encoding show what they lack by escapes."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flushed(status: int) -> int:
    """Write what is still buffered; return the exit status, 1 in place of 0 if results cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if not (status or isinstance(error, BrokenPipeError)):
                _say(f"standard output cannot be written: {error.strerror}")
            status = status or 1
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python tries once more when it ends
    return status


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
    from flmarket.cli.console import stderr

    stderr().print(line, style="red", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
