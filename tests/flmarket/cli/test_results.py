"""The closing table of `flmarket run`."""

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from flmarket.analysis.results.summary import ServiceSummary
from flmarket.cli.results import results_table
from learning.statistics.time_to_target import RoundsToTarget

Flmarket = Callable[..., subprocess.CompletedProcess[str]]

MEANS = {"final accuracy": 90.0, "spent": 1.0, "served": 2.0, "refused": 3.0}


def shown(*to_target: list[int | None]) -> str:
    """The table of services whose runs met their targets in these rounds of 80."""
    rows = [
        ServiceSummary("market (hqfa)", f"s{n}", "hqfa", len(rounds), RoundsToTarget.of(rounds, 80), MEANS)
        for n, rounds in enumerate(to_target)
    ]
    console = Console(file=io.StringIO(), width=200)
    console.print(results_table(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("rounds", "cell"), [([40, 50], "45.0"), ([None, None], "never"), ([40, 50, None], "> 56.7 (2 of 3)")]
)
def test_rounds_to_target_is_no_mean_over_the_runs_that_succeeded(rounds: list[int | None], cell: str) -> None:
    assert f" {cell} │" in shown(rounds)


def test_a_lower_bound_is_explained_below_the_table_and_nothing_else_is() -> None:
    explained = "> 56.7 (2 of 3): a lower bound; 2 of 3 runs met the target, the others count with their last round"
    below = shown([40, 50, 60], [40, 50, None]).rpartition("┘")[2]
    assert " ".join(below.split()) == explained
    assert "lower bound" not in shown([40, 50, 60], [None, None, None])


def test_the_table_says_what_was_set_and_many_logs_are_named_by_their_folder(
    flmarket: Flmarket, tmp_path: Path
) -> None:
    market = [
        "quickstart",
        "--set",
        "training.backend=surrogate",
        "--set",
        "clients.cores=3",
        "--rounds",
        "2",
        "--quiet",
    ]
    few = flmarket("run", *market, "--policy", "random", cwd=tmp_path).stdout
    assert all(f" {change} " in few for change in ("training.backend=surrogate", "clients.cores=3", "rounds=2"))
    assert few.splitlines()[-1].endswith("/random/seed-0000/rounds.csv")
    many = flmarket("run", *market, "--policy", "random", "--seeds", "6", cwd=tmp_path).stdout
    folder = few.splitlines()[-1].partition("/random/")[0]
    assert many.splitlines()[-1] == folder
    assert "rounds.csv" not in many
