"""`flmarket policies`."""

import subprocess
from collections.abc import Callable


def test_all_are_listed(flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    listed = flmarket("policies").stdout
    assert all(name in listed for name in ("random", "lcfa", "hqfa", "greedy", "d-first"))
