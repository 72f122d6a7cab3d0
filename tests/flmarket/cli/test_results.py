"""The closing table of `flmarket run`."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from flmarket.analysis.results.measures import MEASURES, ROUNDS_TO_TARGET
from flmarket.analysis.results.report import Estimate, Report
from flmarket.analysis.results.setting import RunSetting
from flmarket.cli.batches import explained, results_table
from flmarket.core.rich_console import draw
from flmarket.core.text_table import TextTable
from learning.statistics import RoundsToTarget
from learning.statistics.intervals import mean_interval
from scenarios.loader import parse
from support.shell import flmarket

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


def report_of(*to_target: list[int | None]) -> Report:
    """The report of services whose runs met their targets in these rounds of 80."""
    met = {f"s{n}": RoundsToTarget.of(rounds, 80) for n, rounds in enumerate(to_target)}
    setting = RunSetting(parse(MARKET + "".join(map(SERVICE.format, met))))
    rows = [
        Estimate(setting, "hqfa", name, "hqfa", measure, 1, mean_interval([1234.5]), found)
        for measure in MEASURES
        for name, rounds in met.items()
        for found in [rounds if measure is ROUNDS_TO_TARGET else None]
    ]
    return Report([], rows, [], None)


def table_of(report: Report) -> TextTable:
    return results_table(report, {report.estimates[0].setting.folder / "hqfa": "market (hqfa)"})


def shown(table: TextTable, width: int) -> str:
    """A table as a terminal of this width shows it."""
    console = Console(file=io.StringIO(), width=width)
    draw(console, table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("rounds", "cell"), [([40, 50], "45.0"), ([None, None], "never"), ([40, 50, None], "> 56.7 (2 of 3)")]
)
def test_rounds_to_target_is_no_mean_over_the_runs_that_succeeded(rounds: list[int | None], cell: str) -> None:
    assert f" {cell} " in shown(table_of(report_of(rounds)), 80)


def test_a_lower_bound_is_explained_and_nothing_else_is() -> None:
    assert explained(report_of([40, 50, 60], [40, 50, None])) == (
        "> 56.7 (2 of 3): a lower bound; 2 of 3 runs met the target, the others count with their last round"
    )
    assert not explained(report_of([40, 50, 60], [None, None, None]))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_terminal_is_too_narrow_for_a_number(width: int) -> None:
    results = table_of(report_of([40, 50, None], [40, 50, 60]))
    header, spent = ["", *(f"policy-{n}" for n in range(20))], ["spent", *(f"{1e6 + n:.2f}" for n in range(20))]
    policies = TextTable("Results", header, [spent])
    for table in (results, policies):
        text = shown(table, width)
        assert max(map(len, text.splitlines())) <= width
        for name, *cells in table.rows:
            parts = [part for line in text.splitlines() if (part := line.partition(f" {name} ")[2])]
            assert " ".join(" ".join(parts).split()) == " ".join(cells).strip()


@pytest.mark.slow
def test_the_table_says_what_was_set_and_many_logs_are_named_by_their_folder(tmp_path: Path) -> None:
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
    assert all(f"{change} " in few for change in ("training.backend=surrogate", "clients.cores=3", "rounds=2"))
    assert few.splitlines()[-1].endswith("/random/seed-0000/rounds.csv")
    many = flmarket("run", *market, "--policy", "random", "--seeds", "6", cwd=tmp_path).stdout
    folder = few.splitlines()[-1].partition("/random/")[0]
    assert many.splitlines()[-1] == folder
    assert "rounds.csv" not in many
