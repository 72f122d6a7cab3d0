"""The app in a browser, served by textual-serve on the loopback address, to its own pages only."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

from fl.errors import InputError
from fl.installation import command

HOST = "127.0.0.1"


class LoopbackServer(Server):
    """Answers only requests to this machine that come from its own pages.

    Any page in the user's browser can reach a loopback port. Without this check it could open the socket and type into
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
                raise web.HTTPForbidden(text="this server answers its own pages only")
            return await handler(request)

        app.middlewares.append(only_own)
        return app


def serve(arguments: Sequence[str], out: Path, port: int) -> None:
    """Serve until interrupted; every browser window gets its own app.

    Raises:
        InputError: the port cannot be used.
    """
    app = shlex.join(command("tui.commands.web_app", "--out", str(out), *arguments))
    try:
        LoopbackServer(app, host=HOST, port=port, title="flmarket").serve()
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error
