"""`flmarket verify`: status 0 and a line for each valid run, status 1 and the problems otherwise."""

import subprocess
from collections.abc import Callable
from pathlib import Path

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


def test_verify_says_valid_and_ends_with_1_otherwise(
    batch: Path, tmp_path: Path, flmarket: Flmarket, process: Flmarket
) -> None:
    done = flmarket("verify", "runs", "--rerun", cwd=batch)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": valid: 4 rounds, ") == 4
    assert done.stdout.count("same bytes again") == 4
    [table, *_] = (batch / "runs").rglob("rounds.csv")
    copy = tmp_path / "runs" / "x"
    copy.mkdir(parents=True)
    for path in table.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes().replace(b",6.500000,", b",2.000000,"))
    done = process("verify", "runs", cwd=tmp_path)
    assert done.returncode == 1
    assert "the budget 2.000000 is not the scenario's 6.5" in done.stdout


def test_a_folder_without_runs_is_bad_input(tmp_path: Path, flmarket: Flmarket) -> None:
    done = flmarket("verify", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr
