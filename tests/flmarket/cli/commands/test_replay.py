"""`flmarket replay`; what it shares with `flmarket tui` is in test_tui.py."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.loader import parse
from support.runs import played
from support.shell import Done


def test_what_is_no_run_is_bad_input(tmp_path: Path, flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = flmarket("replay", str(tmp_path / "nothing"))
    assert (done.returncode, f"{tmp_path / 'nothing'}: no such directory" in done.stderr) == (2, True)


def test_a_recording_is_asciinemas(
    tmp_path: Path, two_services: str, flmarket: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = played(parse(two_services), tmp_path).path
    done = flmarket("replay", str(run), "--save", str(tmp_path / "clip.gif"))
    assert (done.returncode, "whose files end in .cast" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("99", "unknown round 99; the run has rounds 1 to "),
        ("0", "--round"),
        ("ten", "--round"),
    ],
)
def test_a_round_that_there_is_not_is_bad_input(
    typed: str, told: str, quick_run: tuple[Path, Done], flmarket: Callable[..., Done]
) -> None:
    done = flmarket("replay", str(quick_run[0]), "--round", typed, env={"COLUMNS": "200"})
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_run_without_a_round_says_so(
    quick_run: tuple[Path, Done], tmp_path: Path, flmarket: Callable[..., Done]
) -> None:
    [scenario] = quick_run[0].rglob("scenario.toml")
    (tmp_path / "scenario.toml").write_bytes(scenario.read_bytes())
    done = flmarket("replay", str(tmp_path), "--round", "1")
    assert (done.returncode, "unknown round 1; the run has no round" in done.stderr) == (2, True)
