"""From the shell: where the app cannot run, that it starts and quits in a real terminal, and the browser."""

import http.client
import re
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from flmarket.cli.web import MOST_SESSIONS
from support.shell import CLI, process
from support.terminal import PATIENCE, Terminal, wait_for
from support.web import serving


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("tui",), ("tui", "quickstart"), ("replay", ".")])
def test_without_a_terminal_it_says_so(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("")
    done = process(*(str(tmp_path) if argument == "." else argument for argument in arguments))
    assert done.returncode == 2
    assert done.stderr.startswith(
        "the terminal user interface needs a terminal, but standard input, output or error is not one; "
        "use `flmarket run`, or `flmarket tui --web` for a browser"
    )
    assert "Traceback" not in done.stderr


def test_starts_in_a_terminal_and_quits(tmp_path: Path) -> None:
    with Terminal([*CLI, "tui"], tmp_path) as terminal:
        terminal.wait_for("quickstart")
        terminal.type("q")
        assert terminal.end() == 0


def test_a_terminal_that_is_not_set_to_utf_8_is_named(tmp_path: Path) -> None:
    with Terminal([*CLI, "tui"], tmp_path, env={"PYTHONIOENCODING": "latin-1"}) as terminal:
        assert terminal.end() == 2
        assert b"draws in UTF-8, but this terminal is set to iso8859-1" in terminal.seen.replace(b"\r\n", b" ")


BROKEN = """\
import sys
from tui.app import MarketApp
from flmarket.cli.main import main

def action_help(app):
    secret = "what the data held"
    raise ZeroDivisionError("\x1b]0;owned")

MarketApp.action_help = action_help
sys.argv = ["flmarket", "tui"]
main()
"""


@pytest.mark.slow
def test_a_defect_leaves_its_traceback_on_the_terminal(tmp_path: Path) -> None:
    with Terminal([sys.executable, "-c", BROKEN], tmp_path) as terminal:
        terminal.wait_for("quickstart")
        terminal.type("?")
        terminal.wait_for("This is a defect of flmarket.")
        assert terminal.end() == 70
    seen = terminal.seen.decode("utf-8", "replace")
    assert "in action_help" in seen
    assert "ZeroDivisionError" in seen
    assert "what the data held" not in seen
    assert "\x1b]0;owned" not in seen


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """A server of the app for browsers: its port and its token."""
    with serving(tmp_path_factory.mktemp("web")) as (_, port, token):
        yield port, token


@pytest.mark.slow
def test_browsers_on_this_machine_are_served_with_the_token_and_pages_of_its_own_only(served: tuple[int, str]) -> None:
    port, token = served
    page = f"/?token={token}"
    assert answer(port, page).status == 200
    assert answer(port, page, Origin=f"http://127.0.0.1:{port}").status == 200
    assert answer(port, page, Host="evil.example").status == 403
    assert answer(port, page, Origin="http://evil.example").status == 403
    assert answer(port, page, Origin="null").status == 403
    for path in ("/", "/?token=", f"/?token={token[:-1]}", f"/?token={token}x", "/?token=%ff", "/ws", "/download/x"):
        assert answer(port, path).status == 403, path
    again = process("tui", "--web", "--port", str(port))
    assert again.returncode == 2
    assert again.stdout == ""  # no address before the port is listened on
    assert f"port {port} cannot be used" in again.stderr


@pytest.mark.slow
def test_the_page_takes_nothing_from_outside(served: tuple[int, str]) -> None:
    port, token = served
    found = answer(port, f"/?token={token}")
    assert re.findall(r"https?://", found.text) == []
    policy = dict(part.strip().split(" ", 1) for part in found.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "http" not in " ".join(policy.values()).replace("https", "http")
    assert found.headers["Referrer-Policy"] == "no-referrer"
    own = re.findall(r'(?:href|src)="([^"]+)"|url\("([^"]+)"\)', found.text)
    for path in (one or other for one, other in own):
        assert answer(port, path, binary=True).status == 200, path


@pytest.mark.slow
def test_a_socket_needs_the_token_and_an_origin_and_there_are_only_a_few(served: tuple[int, str]) -> None:
    port, token = served
    own = f"http://127.0.0.1:{port}"
    assert handshake(port, f"/ws/{token}", None) == 403
    assert handshake(port, f"/ws/{token}", "http://evil.example") == 403
    assert handshake(port, "/ws/guess", own) == 403
    assert handshake(port, "/ws", own) == 403
    with ExitStack() as opened:
        taken = [handshake(port, f"/ws/{token}?width=80&height=24", own, opened) for _ in range(6)]
        assert taken == [101] * MOST_SESSIONS + [503] * (6 - MOST_SESSIONS)
    wait_for(lambda: handshake(port, f"/ws/{token}", own) == 101)  # once windows are closed, others are served


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_window_outlives_its_server_which_ends_before_a_window_would_be_missed(
    number: signal.Signals, tmp_path: Path
) -> None:
    with serving(tmp_path) as (server, port, token), ExitStack() as opened:
        own = f"http://127.0.0.1:{port}"
        assert handshake(port, f"/ws/{token}?width=80&height=24", own, opened) == 101
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        wait_for(children.read_text)
        windows = children.read_text().split()
        server.send_signal(number)
        server.wait(12)  # heartbeats are 15 seconds apart
        wait_for(lambda: not any(Path(f"/proc/{window}").exists() for window in windows))


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


def answer(port: int, path: str, *, binary: bool = False, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers=headers)
        found = connection.getresponse()
        content = found.read()
        return Answer(found.status, dict(found.getheaders()), "" if binary else content.decode())
    finally:
        connection.close()


def handshake(port: int, path: str, origin: str | None, opened: ExitStack | None = None) -> int:
    """Ask for a WebSocket on a real socket; return the status, and keep the socket open until ``opened`` closes it."""
    lines = [
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]  # fmt: skip
    lines += [] if origin is None else [f"Origin: {origin}"]
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    try:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(connection.recv(1000).split()[1])
    finally:
        if opened is None:
            connection.close()
        else:
            opened.enter_context(connection)


@pytest.mark.slow
def test_the_demo_plays_in_a_terminal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with Terminal([*CLI, "demo"], tmp_path, env={"TMPDIR": str(tmp_path)}) as terminal:
        terminal.wait_for("Three services compete")
        terminal.type("x")
        terminal.wait_for("The app is yours")
        terminal.type(" ")  # else the run may be over before the next key comes
        terminal.wait_for("paused")
        terminal.type("q")
        terminal.wait_for("still live")
        terminal.type("\r")
        assert terminal.end() == 0
    assert list(tmp_path.iterdir()) == []
