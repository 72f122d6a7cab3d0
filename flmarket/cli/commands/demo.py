"""``flmarket demo``: the terminal user interface plays itself for half a minute."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from flmarket.cli.launch import require_terminal, run


def demo() -> None:
    """Watch the terminal user interface play a market by itself for half a minute; any key takes over."""
    require_terminal()
    from tui.demo import DemoApp

    with TemporaryDirectory(prefix="flmarket-demo-") as folder:
        status = run(DemoApp(Path(folder), out=Path("runs")))
    if status:
        sys.exit(status)
