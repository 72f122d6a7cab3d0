"""A replay that is recorded: a file for asciinema with every round, at a pace one can follow."""

import json
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from scenarios.loader import parse
from support.runs import played
from tui.recording import SIZE, record


def test_every_round_is_drawn_at_its_time(two_services: str, tmp_path: Path) -> None:
    run, file = played(parse(two_services), tmp_path), tmp_path / "clip.cast"
    rounds = record(run.path, file)
    head, *drawings = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, *SIZE)
    assert all(kind == "o" for _, kind, _ in drawings)
    times = [at for at, _, _ in drawings]
    assert times == sorted(times)
    assert len(set(times)) == rounds + 1  # the rounds, and the end
    assert (drawings[0][2], drawings[-1][2][-6:]) == ("\x1b[?25l", "\x1b[?25h")  # the cursor is there again at the end
    assert any("38;2;" in drawn for _, _, drawn in drawings)  # in full colour, whatever terminal it is made in


def test_a_recording_may_begin_with_a_later_round(two_services: str, tmp_path: Path) -> None:
    run, file = played(parse(two_services), tmp_path), tmp_path / "clip.cast"
    assert record(run.path, file, first=3) == 2
    first = "".join(drawn for at, _, drawn in map(json.loads, file.read_text().splitlines()[1:]) if at == 0)
    assert "round 3/4" in first


def test_a_run_without_a_round_is_refused(two_services: str, tmp_path: Path) -> None:
    run = tmp_path / "market-00000000" / "as-configured" / "seed-0000"
    run.mkdir(parents=True)
    (run / "scenario.toml").write_text(two_services, encoding="utf-8")
    with pytest.raises(InputError, match="no round was played"):
        record(run, tmp_path / "clip.cast")


def test_a_run_that_is_being_played_is_refused_at_once(two_services: str, tmp_path: Path) -> None:
    run = played(parse(two_services), tmp_path)
    with run.locked(), pytest.raises(InputError, match="is being played; record it once it is over"):
        record(run.path, tmp_path / "clip.cast")
