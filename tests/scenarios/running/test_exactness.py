"""The same run gives the same bytes however many workers train it."""

from pathlib import Path

import pytest

from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.running.batch import run_all
from scenarios.running.planning import plan
from scenarios.running.progress import reporter
from scenarios.running.run_options import RunOptions
from support.runs import RESULTS
from support.tiers import slow

SMALL = ["rounds=2", "clients.count=8", "training.eval_samples=150"]


@pytest.mark.parametrize("kernel", ["auto", *slow("reference")])
def test_logs_are_the_same_bytes_for_any_number_of_workers(kernel: str, tmp_path: Path, shelf: Shelf) -> None:
    scenario = load("quickstart", [*SMALL, f'training.kernel="{kernel}"'])
    logs = {}
    for workers in (0, 1, 2, 4):
        runs = plan([scenario], [], [3], tmp_path / str(workers), shelf)
        with reporter(quiet=True) as observer:
            result = run_all(runs, shelf, observer, RunOptions(workers=workers))
        assert result.complete == runs
        logs[workers] = [(runs[0].directory.path / name).read_bytes() for name in RESULTS]
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]
    assert logs[4] == logs[0]
