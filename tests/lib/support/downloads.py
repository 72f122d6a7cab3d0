"""Files of data sets where flmarket looks for them, and a server on the loopback address for torchvision."""

import functools
import gzip
import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def put_files(folder: Path, contents: Mapping[str, bytes], *, compress: bool = False) -> Path:
    """Write files into a new folder, on demand compressed; return it."""
    folder.mkdir(parents=True)
    for file, content in contents.items():
        (folder / (file + ".gz" * compress)).write_bytes(gzip.compress(content) if compress else content)
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[SimpleNamespace]:
    """Serve the files of a new folder: ``address`` is the server's, ``requests`` the paths that were asked for."""
    folder.mkdir()
    requests: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            requests.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield SimpleNamespace(address=f"http://127.0.0.1:{running.server_port}", requests=requests)
        finally:
            running.shutdown()
            thread.join()
