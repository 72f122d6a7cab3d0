"""The app for browsers: a server of it."""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.shell import CLI
from support.terminal import PATIENCE


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Serve the app in a folder, until the block ends: the process, its port and its token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*CLI, "tui", "--web", "--port", str(port)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        [address] = re.findall(r"Open (http://127.0.0.1:\d+/)\?token=(\S{32})$", server.stdout.readline())
        assert address[0] == f"http://127.0.0.1:{port}/"
        yield server, port, address[1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
        server.stdout.close()
