"""Directories of what a batch will play: there before the first run begins, and no runs to anybody else."""

import pytest

from flmarket.core.errors import RunError
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import find_runs
from scenarios.logs.run_state import RunState
from scenarios.running.batch import play_batch
from scenarios.running.run_options import RunOptions


def test_a_batch_makes_the_directories_of_its_runs_before_the_first_begins(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "scenarios.running.batch.execute", lambda run, *_, **__: seen.append(list(tmp_path.glob("*/*/*")))
    )
    scenario = load("quickstart", ["rounds=1", "training.backend=surrogate"])
    with pytest.raises(RunError, match="ended without a result"):  # nothing was played
        play_batch([scenario], ["hqfa", "random"], [0, 1], RunOptions(out=tmp_path), progress=False, failures=False)
    assert [len(found) for found in seen] == [4, 4, 4, 4]


def test_an_announced_run_is_absent_until_it_begins(tmp_path):
    place = RunDirectory(tmp_path / "small-0a0b0c0d" / "hqfa" / "seed-0000")
    place.announce()
    assert place.state is RunState.WAITING
    found = find_runs([tmp_path])
    assert (found.ended, found.begun, found.announced) == ([], [], [place])
    place.prepare("rounds = 1\n")
    assert place.state is RunState.INCOMPLETE


def test_what_cannot_be_written_is_left_to_the_run_itself(tmp_path):
    (tmp_path / "file").touch()
    RunDirectory(tmp_path / "file" / "hqfa" / "seed-0000").announce()
