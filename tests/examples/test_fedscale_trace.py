"""FedScale's traces of when phones are there, converted to a file that a scenario can name."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import flmarket

SCRIPT = Path(__file__).parents[2] / "examples" / "fedscale_trace.py"
PHONES = {
    # One of the public file's, as its readers quote it.
    3834: {
        "inactive": [65881, 133574, 208292, 276575, 295006, 356236, 400906, 475099],
        "finish_time": 518400,
        "active": [12788, 100044, 188992, 271372, 276663, 352625, 356267, 441193],
    },
    7: {"inactive": [3601], "finish_time": 518400, "active": [3599]},  # between rounds
    12: {"inactive": [518400], "finish_time": 518400, "active": [0]},
}


def convert(folder: Path, content: object) -> "subprocess.CompletedProcess[str]":
    (folder / "phones").write_bytes(pickle.dumps(content))
    command = [sys.executable, SCRIPT, "phones", "--rounds", "40", "--seconds", "14400", "--out", "there.csv"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_client_is_there_if_it_is_when_the_round_begins(tmp_path: Path) -> None:
    done = convert(tmp_path, PHONES)
    assert done.stdout == "there.csv: 2 clients\n", done.stderr
    lines = (tmp_path / "there.csv").read_text().splitlines()
    assert lines[:3] == ["client,from,to", "0,2,5", "0,8,10"]
    assert lines[-1] == "1,1,40"
    trace = {"clients.availability": str(tmp_path / "there.csv"), "clients.count": 2}
    flmarket.load("paper", trace | {"training.backend": "surrogate", "rounds": 40})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (Path("anything"), "the file asks for pathlib."),
        ([1, 2], "'list' object has no attribute 'values'"),
        ({1: {"active": [1], "inactive": [2]}}, "KeyError: 'finish_time'"),
        ({1: {"active": [1], "inactive": [2], "finish_time": 0}}, "finish_time must be above 0"),
        ({1: {"active": [1, 3], "inactive": [2], "finish_time": 9}}, "active as long as inactive"),
        ({1: {"active": ["a"], "inactive": [2], "finish_time": 9}}, "is not FedScale's trace: "),
    ],
)
def test_what_is_no_trace_is_said_in_a_line(content: object, problem: str, tmp_path: Path) -> None:
    done = convert(tmp_path, content)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("phones: is not ")
    assert problem in done.stderr
    assert not (tmp_path / "there.csv").exists()


def test_a_trace_in_seconds_has_each_stay_for_continuous_markets(tmp_path: Path) -> None:
    phones = {**PHONES, 99: {"active": [5, 9, 70, 3], "inactive": [9, 20.5, 70, 4], "finish_time": 100}}
    (tmp_path / "phones").write_bytes(pickle.dumps(phones))
    command = [sys.executable, SCRIPT, "phones", "--out", "there.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "there.csv: 4 clients\n", done.stderr
    lines = (tmp_path / "there.csv").read_text().splitlines()
    assert lines[:3] == ["client,from_second,to_second", "0,12788,65881", "0,100044,133574"]
    # stays that touch are one, and empty ones are left out
    assert lines[-3:] == ["2,0,518400", "3,3,4", "3,5,20.5"]
    trace = {"clients.availability": str(tmp_path / "there.csv"), "clients.count": 4, "timeline.mode": "continuous"}
    flmarket.load("paper", trace | {"training.backend": "surrogate", "timeline.slot": 600.0, "rounds": 864})
