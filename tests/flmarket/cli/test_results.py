"""The closing table of `flmarket run`."""

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from flmarket.analysis.results.measures import MEASURES, ROUNDS_TO_TARGET
from flmarket.analysis.results.report import Estimate, Report
from flmarket.analysis.results.setting import Setting
from flmarket.cli.results import results_table
from learning.statistics.intervals import mean_interval
from learning.statistics.time_to_target import RoundsToTarget
from scenarios.loader import parse

Flmarket = Callable[..., subprocess.CompletedProcess[str]]

MARKET = """
name = "market"
rounds = 80
clients = { count = 2, cores = 1, data_size = [100], emd = [0.2], cost = { per_sample = 0.05, per_emd = 0.5 } }
"""
SERVICE = """
[[services]]
name = "{}"
dataset = "mnist"
budget = 20
target_accuracy = 0.5
reward_base = 16.0
policy = "hqfa"
"""


def shown(*to_target: list[int | None]) -> str:
    """The table of services whose runs met their targets in these rounds of 80."""
    met = {f"s{n}": RoundsToTarget.of(rounds, 80) for n, rounds in enumerate(to_target)}
    setting = Setting(parse(MARKET + "".join(map(SERVICE.format, met))))
    rows = [
        Estimate(setting, "hqfa", name, "hqfa", measure, 1, mean_interval([1.0]), found)
        for measure in MEASURES
        for name, rounds in met.items()
        for found in [rounds if measure is ROUNDS_TO_TARGET else None]
    ]
    console = Console(file=io.StringIO(), width=200)
    console.print(results_table(Report([], rows, [], None), {setting.folder / "hqfa": "market (hqfa)"}))
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
