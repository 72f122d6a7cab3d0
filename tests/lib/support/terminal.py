"""A command in a real pseudo-terminal, which it controls as it would a window's."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

PATIENCE = 60.0
"""Seconds after which a wait has failed; on a busy machine everything takes longer."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminal:
    """A process in a terminal of its own. As a context manager: no process of its session outlives it.

    Attributes:
        written: what it has written.
        seen: what it has written since the last ``wait_for``.
    """

    def __init__(
        self,
        command: Iterable[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        ignoring: Iterable[signal.Signals] = (),
    ) -> None:
        """Start a command.

        Args:
            command: its words.
            cwd: the folder that it is started in.
            env: what its environment has besides this process's.
            ignoring: what is ignored when it starts; all else has its default, whatever this process does.
        """
        self._master, self._slave = pty.openpty()
        self._before = termios.tcgetattr(self._slave)
        self._before[0] &= ~termios.IXON  # ctrl+s that comes before an app reads keys must not stop all output
        termios.tcsetattr(self._slave, termios.TCSANOW, self._before)
        self.resize(80, 24)
        self.written, self.seen = bytearray(), bytearray()

        def begin() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN if number in ignoring else signal.SIG_DFL)

        self.process = subprocess.Popen(
            [*command], stdin=self._slave, stdout=self._slave, stderr=self._slave, cwd=cwd, preexec_fn=begin,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})}, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.session():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for descriptor in (self._master, self._slave):
            with suppress(OSError):
                os.close(descriptor)

    def wait_for(self, *words: str) -> None:
        """Wait until it writes something, or one thing after another: a second wait would not see what came at once."""
        self.seen.clear()
        pattern = re.compile(b".*".join(re.escape(word.encode()) for word in words), re.DOTALL)
        self.wait_until(lambda: pattern.search(self.seen))

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Wait for something to happen."""
        end = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < end, self.seen[-2000:]
            self._read(0.05)

    def type(self, keys: str | bytes) -> None:
        """Type something."""
        os.write(self._master, keys if isinstance(keys, bytes) else keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, which the kernel tells the process."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the terminal, as one does with a window."""
        os.close(self._master)
        self._master = -1

    def end(self) -> int:
        """Wait for the end of the process; return its exit status."""
        self.wait_until(lambda: self.process.poll() is not None)
        while self._read(0.0):
            pass
        return self.process.returncode

    def restored(self) -> bool:
        """Return whether the terminal is as it was: echo and all that, its main screen, its cursor, no mouse."""
        left = {1049: b"l", 1000: b"l", 1003: b"l", 25: b"h"}
        set_to = {int(mode): to for mode, to in re.findall(rb"\x1b\[\?(\d+)([hl])", self.written)}  # the last time
        modes = all(set_to.get(mode, to) == to for mode, to in left.items())
        return modes and termios.tcgetattr(self._slave) == self._before

    def children(self) -> list[int]:
        """Return the processes that the process has started itself."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def session(self) -> list[int]:
        """Return the processes of the terminal's session."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.getsid(int(process.name)) == self.process.pid:
                    found.append(int(process.name))
        return found

    def _read(self, patience: float) -> bool:
        """Read what is there; return whether that was anything."""
        if self._master < 0:
            time.sleep(patience)
        elif select.select([self._master], [], [], patience)[0]:
            with suppress(OSError):  # nobody has it open any more
                text = os.read(self._master, 65536)
                self.seen += text
                self.written += text
                return True
        return False


def wait_for(happened: Callable[[], object]) -> None:
    """Wait for something to happen outside of terminals."""
    end = time.monotonic() + 4 * PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Return whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
