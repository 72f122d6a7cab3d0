"""The app in a browser, served by textual-serve on the loopback address, to anyone with the address that is printed.

Any process and any page in any browser on this machine can reach a loopback port, and whatever reaches the app can do
all that its user can. So the address holds a token that only this process and its terminal know; a request must name
this server as its host, and a socket must come from its own page. The page takes nothing from outside.
"""

import asyncio
import html
import logging
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from textual_serve.server import Server

from flmarket.cli.console import note, result
from flmarket.core.crash import defect
from flmarket.core.errors import InputError
from flmarket.core.installation import command

HOST = "127.0.0.1"

GRACE = 2.0  # seconds that windows get to end when the server does

MOST_SESSIONS = 4  # windows that are served at a time; each has processes of its own

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>flmarket</title>
<link rel="stylesheet" href="/static/css/xterm.css">
<style>
@font-face {{ font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf") }}
body {{ background: #0c181f; color: #f2f2f2; font: 16px "Roboto Mono", monospace; margin: 0 }}
#terminal {{ position: absolute; inset: 0 }}
#ended {{ display: none; position: absolute; inset: 0; z-index: 10; padding: 40vh 0; text-align: center }}
body.-closed #ended {{ display: block; background: #0c181fdd }}
</style>
<script src="/static/js/textual.js"></script><script src="/keys.js"></script></head>
<body><div id="ended">The session has ended, or {most} windows are open; reload this page to start another.</div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="16"></div>
</body></html>
"""

_KEYS = """\
// Keys go to the terminal without a click: when the app has begun to draw, and when the window is chosen again.
const choose = () => document.querySelector(".xterm-helper-textarea")?.focus();
addEventListener("load", () => {
  new MutationObserver(choose).observe(document.body, { attributeFilter: ["class"] });
});
addEventListener("focus", choose);
"""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoopbackServer(Server):
    """Answers only requests to this machine that bring its token, and serves a few windows at a time."""

    def __init__(self, app: str, port: int) -> None:
        """Prepare to serve a command's app on a port of the loopback address."""
        super().__init__(app, host=HOST, port=port, title="flmarket")
        self._token = secrets.token_urlsafe(24)
        self._own = {f"{HOST}:{port}", f"localhost:{port}"}
        self._open: set[asyncio.Task[Any] | None] = set()  # what serves each window

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self._token}"

    def initialize_logging(self) -> None:
        """Log in lines, where textual-serve would log tracebacks with the values of variables."""
        logging.basicConfig(level=logging.WARNING, handlers=[_Lines()], force=True)

    def serve(self, debug: bool = False) -> None:
        """Serve until interrupted. The port is listened on before the address is printed: its reader may connect."""
        self.debug = debug
        self.initialize_logging()
        with socket.create_server((HOST, self.port)) as listening:
            web.run_app(self._make_app(), sock=listening, print=None, shutdown_timeout=GRACE)

    async def on_startup(self, app: web.Application) -> None:
        result(f"Open {self.address}\nPress Ctrl+C to quit.")

    async def on_shutdown(self, app: web.Application) -> None:
        for task in self._open:  # a browser would not be missed before its next heartbeat
            if task:
                task.cancel()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.router.add_get("/ws/{token}", self._socket)
        app.router.add_get("/keys.js", self._keys)
        hosts = " ".join(f"ws://{host}" for host in sorted(self._own))
        headers = {
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
            f"img-src 'self' data:; font-src 'self'; connect-src 'self' {hosts}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }

        @web.middleware
        async def only_own(request: web.Request, handler: _Handler) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            if request.host not in self._own or (
                origin is not None and origin.removeprefix("http://") not in self._own
            ):
                raise web.HTTPForbidden(text="this server answers its own pages only")
            if not (self._may(request) or request.path == "/keys.js" or request.path.startswith("/static/")):
                raise web.HTTPForbidden(text="open the address that flmarket tui --web printed; it holds a token")
            return await handler(request)

        async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
            response.headers.update(headers)

        app.middlewares.append(only_own)
        app.on_response_prepare.append(add_headers)
        return app

    def _may(self, request: web.Request) -> bool:
        """Whether a request brings the token: the page in its query, the socket of the page in its path."""
        brought = request.query.get("token", "") if request.path == "/" else request.path.removeprefix("/ws/")
        return secrets.compare_digest(brought.encode(), self._token.encode())

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        address = html.escape(f"ws://{request.host}/ws/{self._token}")
        return web.Response(text=_PAGE.format(socket=address, most=MOST_SESSIONS), content_type="text/html")

    async def _keys(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=_KEYS, content_type="text/javascript")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if "Origin" not in request.headers:  # every browser sends it
            raise web.HTTPForbidden(text="this server answers its own pages only")
        if len(self._open) >= MOST_SESSIONS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_SESSIONS} windows are open; close one of them")
        self._open.add(task := asyncio.current_task())
        try:
            return await self.handle_websocket(request)
        finally:
            self._open.discard(task)


class _Lines(logging.Handler):
    """Writes one line for each record, or the traceback of its exception."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        note(record.getMessage() if error is None else defect(error))


def serve(arguments: Sequence[str], out: Path, port: int) -> None:
    """Serve until interrupted; every browser window gets its own app."""
    app = "exec " + shlex.join(command("flmarket.cli.launch", "--out", str(out), *arguments))
    try:
        LoopbackServer(app, port).serve()
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error
