"""The app in a browser, by textual-serve: on the loopback address, for pages of our own only."""

import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

from fl.errors import InputError

HOST = "127.0.0.1"


class LoopbackServer(Server):
    """Answers only requests that name this machine, from pages that came from it.

    Any page in the user's browser can reach a loopback port. Without the check it could open the socket and type into
    the app.
    """

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        own = {f"{HOST}:{self.port}", f"localhost:{self.port}"}

        @web.middleware
        async def only_own(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            if request.host not in own or (origin is not None and origin.removeprefix("http://") not in own):
                raise web.HTTPForbidden(text="only pages of this server may talk to it")
            return await handler(request)

        app.middlewares.append(only_own)
        return app


def serve(arguments: Sequence[str], out: Path, port: int) -> None:
    """Serve until interrupted; every browser window gets an app of its own.

    Raises:
        InputError: the port cannot be used.
    """
    command = shlex.join([sys.executable, "-P", "-m", "tui.commands.web_app", "--out", str(out), *arguments])
    try:
        LoopbackServer(command, host=HOST, port=port, title="flmarket").serve()
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error
