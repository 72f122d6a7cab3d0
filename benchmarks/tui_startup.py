"""Start-up time of the terminal user interface, which must be at most 1.5 times that of an empty Textual app.

    python benchmarks/tui_startup.py [REPETITIONS]

Both run in a pseudo-terminal, and are timed from the start of the process until the title is on the screen. They take
turns, and the fastest repetition of each counts: it is the one that other work on the machine disturbed the least.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

MARK = b"flmarket"
LIMIT = 1.5
PATIENCE = 60.0

EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("flmarket")
Empty().run()
"""


def first_picture(command: list[str], folder: str) -> float:
    """Return how many seconds it takes until a command has drawn its title."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 48, 160, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment, start_new_session=True
    )
    os.close(terminal)
    seen = b""
    try:
        while MARK not in seen:
            ready, _, _ = select.select([master], [], [], PATIENCE)
            assert ready, f"no title was drawn: {seen[-500:]!r}"
            seen = seen[-100:] + os.read(master, 65536)
        return time.perf_counter() - began
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def main(repetitions: int) -> int:
    ours = [sys.executable, "-P", "-m", "tui.cli", "tui"]
    empty = [sys.executable, "-c", EMPTY]
    times: dict[str, list[float]] = {"empty": [], "flmarket": []}
    with tempfile.TemporaryDirectory() as folder:
        for command in (ours, empty):
            first_picture(command, folder)  # fills the caches: byte code, files
        for _ in range(repetitions):
            times["empty"].append(first_picture(empty, folder))
            times["flmarket"].append(first_picture(ours, folder))
    for name, found in times.items():
        print(f"{name:<10} fastest {min(found):.3f} s   all {', '.join(f'{t:.3f}' for t in sorted(found))}")
    ratio = min(times["flmarket"]) / min(times["empty"])
    print(f"ratio      {ratio:.2f} (limit {LIMIT})")
    return ratio > LIMIT


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
