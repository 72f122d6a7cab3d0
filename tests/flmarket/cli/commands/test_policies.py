"""`flmarket policies`."""

import subprocess
from collections.abc import Callable


def test_all_are_listed(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    listed = command("policies").stdout
    assert all(name in listed for name in ("random", "lcfa", "hqfa", "greedy", "d-first"))
