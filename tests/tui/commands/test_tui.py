"""From the shell: where the app cannot run, that it starts and quits in a real terminal, and the browser."""

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from support.shell import CLI

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("arguments", [("tui",), ("tui", "quickstart"), ("replay", ".")])
def test_without_a_terminal_it_says_so(arguments: tuple[str, ...], tmp_path: Path, process: Flmarket) -> None:
    (tmp_path / "scenario.toml").write_text("")
    done = process(*(str(tmp_path) if argument == "." else argument for argument in arguments))
    assert done.returncode == 2
    assert done.stderr.startswith(
        "the terminal user interface needs a terminal, but standard input, output or error is not one; "
        "use `flmarket run`, or `flmarket tui --web` for a browser"
    )
    assert "Traceback" not in done.stderr


class Terminal:
    """A process in a pseudo-terminal."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=cwd, env=environment, start_new_session=True
        )
        os.close(terminal)

    def wait_for(self, word: str) -> None:
        seen, end = b"", time.monotonic() + 60
        while word.encode() not in seen:
            assert time.monotonic() < end, seen[-2000:]
            if select.select([self._master], [], [], 0.5)[0]:
                seen += os.read(self._master, 65536)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        end = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < end
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    os.read(self._master, 65536)
                except OSError:
                    break
        status = self.process.wait(30)
        os.close(self._master)
        return status


def test_starts_in_a_terminal_and_quits(tmp_path: Path) -> None:
    terminal = Terminal([*CLI, "tui"], tmp_path)
    terminal.wait_for("quickstart")
    terminal.type("q")
    assert terminal.end() == 0


def test_a_terminal_that_goes_away_takes_the_app_with_it(tmp_path: Path) -> None:
    terminal = Terminal([*CLI, "tui"], tmp_path)
    terminal.wait_for("quickstart")
    os.killpg(terminal.process.pid, signal.SIGHUP)
    assert terminal.end() != 0


def test_serves_browsers_on_this_machine_and_pages_of_its_own_only(tmp_path: Path, process: Flmarket) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*CLI, "tui", "--web", "--port", str(port)], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert status(port, {}) == 200
        assert status(port, {"Host": "evil.example"}) == 403
        assert status(port, {"Origin": "http://evil.example"}) == 403
        assert status(port, {"Origin": f"http://127.0.0.1:{port}"}) == 200
        again = process("tui", "--web", "--port", str(port))
        assert again.returncode == 2
        assert f"port {port} cannot be used" in again.stderr
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def status(port: int, headers: dict[str, str]) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=headers)
    end = time.monotonic() + 40
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except urllib.error.URLError:
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.1)
