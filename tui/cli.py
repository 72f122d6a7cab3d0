"""The door of the ``flmarket`` command line: Ctrl-C and other signals that end it, and exit statuses.

Exit status: 0 done, 1 a run failed, 2 bad input, 70 a defect of flmarket, 130 interrupted, 143 ended by SIGTERM, 129 by
SIGHUP. Nothing but ``main`` is imported before Ctrl-C is taken care of: what comes before that, the start of Python
itself, cannot be kept from showing a traceback.
"""

import os
import signal
import sys


def main() -> None:
    try:
        _on_ctrl_c(_end)
    except KeyboardInterrupt:  # before it was set
        _end(signal.SIGINT)
    try:
        from fl.crash import guarded
    except ImportError as error:  # something else on Python's path is called fl
        sys.stderr.write(f"flmarket cannot start: Python finds another package named 'fl': {error}\n")
        sys.exit(2)
    from tui.commands.streams import finish_streams

    status = guarded(_run, _say)
    if status == 0:
        status = guarded(finish_streams, _say)
    sys.exit(status)


def _run() -> object:
    from tui.program import run_arguments

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
    from tui.commands.console import stderr

    stderr().print(line, style="red", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
