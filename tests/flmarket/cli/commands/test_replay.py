"""`flmarket replay`; what it shares with `flmarket tui` is in test_tui.py."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from scenarios.loader import parse
from support.runs import played


def test_what_is_no_run_is_bad_input(tmp_path: Path, flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = flmarket("replay", str(tmp_path / "nothing"))
    assert (done.returncode, f"{tmp_path / 'nothing'}: no such directory" in done.stderr) == (2, True)


def test_a_recording_is_asciinemas(
    tmp_path: Path, two_services: str, flmarket: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = played(parse(two_services), tmp_path).path
    done = flmarket("replay", str(run), "--save", str(tmp_path / "clip.gif"))
    assert (done.returncode, "whose files end in .cast" in done.stderr) == (2, True)
