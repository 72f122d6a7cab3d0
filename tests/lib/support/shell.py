"""The command line: in this process, where a new one would show nothing more, and in a process of its own."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from flmarket.cli.main import main
from scenarios.file.schema import REGISTRIES

CLI = [sys.executable, "-P", "-m", "flmarket.cli.main"]
"""The command of a real process."""

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]
"""One of the two below."""


def flmarket(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run ``flmarket arguments`` in this process, which has imported torch long ago; it knows no plug-ins.

    What a shell would show as a traceback is raised here.
    """
    out, err, status = io.StringIO(), io.StringIO(), 0
    with ExitStack() as shell:
        shell.enter_context(chdir(cwd or Path.cwd()))
        shell.enter_context(patch.dict(os.environ, env or {}))
        shell.enter_context(patch.object(sys, "argv", ["flmarket", *arguments]))
        for registry in REGISTRIES:
            shell.enter_context(patch.object(registry, "_registered", {}))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            shell.callback(signal.signal, number, signal.getsignal(number))
        shell.enter_context(redirect_stdout(out))
        shell.enter_context(redirect_stderr(err))
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Done(["flmarket", *arguments], status, out.getvalue(), err.getvalue())


def process(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run ``flmarket arguments`` in a process of its own: for imports, signals, pipes, and the exit status itself."""
    environment = os.environ | (env or {})
    return subprocess.run(
        [*CLI, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd, env=environment
    )
