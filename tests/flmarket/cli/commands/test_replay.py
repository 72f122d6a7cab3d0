"""`flmarket replay`; what it shares with `flmarket tui` is in test_tui.py."""

import subprocess
from collections.abc import Callable
from pathlib import Path


def test_what_is_no_run_is_bad_input(tmp_path: Path, flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = flmarket("replay", str(tmp_path / "nothing"))
    assert (done.returncode, f"{tmp_path / 'nothing'}: no such directory" in done.stderr) == (2, True)
