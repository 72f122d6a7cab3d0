"""What `flmarket report --format csv` prints is what the logs come to."""

import csv
import io
import subprocess
import sys
from collections import defaultdict
from math import isclose
from pathlib import Path

import pytest

from audit.files import Run
from audit.report import differences, estimates

OURS = {"misreport profit", "overstated"}
"""Measures of clients that misreport, of which there are none here: 0."""


@pytest.fixture(scope="module")
def printed(played: Path) -> list[dict[str, str]]:
    """The report on all runs; what can be compared with `random` is."""
    command = [sys.executable, "-m", "tui.cli", "report", str(played), "--format", "csv", "--baseline", "random"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.fixture(scope="module")
def groups(runs: list[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs that differ in their seed alone, by the scenario's folder and the policy."""
    found = defaultdict(list)
    for run in runs:
        found[run.path.parent.parent.name, run.meta["policy"]].append(run)
    return found


def same(text: str, value: float) -> bool:
    """Whether a printed number is another one's, but for the order in which it was summed."""
    return isclose(float(text), value, rel_tol=1e-11, abs_tol=1e-9)


@pytest.mark.slow
def test_every_mean_and_interval(printed: list[dict[str, str]], groups: dict[tuple[str, str], list[Run]]) -> None:
    seen = set()
    for key, members in groups.items():
        wanted = estimates(members)
        rows = [row for row in printed if (row["scenario"], row["policy"]) == key]
        assert {(row["measure"], row["service"]) for row in rows if row["measure"] not in OURS} == wanted.keys()
        for row in rows:
            if row["measure"] in OURS:
                assert float(row["mean"]) == 0
                continue
            mean, interval = wanted[row["measure"], row["service"]]
            assert int(row["seeds"]) == len(members)
            assert same(row["mean"], mean), row
            assert (row["low"], row["high"]) == ("", "") if interval is None else True, row
            assert interval is None or (same(row["low"], interval[0]) and same(row["high"], interval[1])), row
            seen.add(interval is None)
    assert seen == {True, False}


def test_every_difference_from_the_baseline(
    printed: list[dict[str, str]], groups: dict[tuple[str, str], list[Run]]
) -> None:
    compared = 0
    for (folder, policy), members in groups.items():
        rows = [row for row in printed if (row["scenario"], row["policy"]) == (folder, policy) and row["difference"]]
        baseline = groups.get((folder, "random"), [])
        assert bool(rows) == (policy != "random" and bool(baseline))
        wanted = differences(members, baseline) if rows else {}
        for row in rows:
            mean, *interval = wanted[row["measure"], row["service"]]
            assert same(row["difference"], mean), row
            assert [row["difference_low"], row["difference_high"]] == ["", ""] or (
                same(row["difference_low"], interval[0]) and same(row["difference_high"], interval[1])
            )
            compared += len(interval)
    assert compared > 100
