"""Every built-in scenario, recomputed from its logs alone: the audit finds nothing, and it could."""

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from audit.checks import CHECKS, findings
from audit.files import Run
from audit.market import World


def test_there_are_47_runs_or_more_of_all_built_in_scenarios(runs: list[Run]) -> None:
    played = Counter(run.meta["scenario"] for run in runs)
    names = {
        Path(str(file)).stem for file in resources.files("scenarios.builtin").iterdir() if file.name.endswith(".toml")
    }
    assert played.keys() == names
    assert played.total() >= 47
    assert len({run.meta["policy"] for run in runs}) == 6
    assert sum(len(run.offers) for run in runs) > 10_000


@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])
def test_nothing_is_found(runs: list[Run], check: Callable[[Run], list[str]]) -> None:
    assert [(run.path, problem) for run in runs for problem in check(run)] == []


def test_what_is_checked_happens_in_the_runs(runs: list[Run]) -> None:
    """A check of what never happens would pass for ever."""
    outcomes = Counter(row["outcome"] for run in runs for row in run.offers)
    assert min(outcomes["served"], outcomes["outbid"], outcomes["dropped"]) > 50
    assert {row["status"] for run in runs for row in run.rounds} == {"waiting", "training", "reached", "left"}
    assert {row["event"] for run in runs for row in run.events} >= {"exit", "evaluate", "pay"}
    assert {run.mechanism for run in runs} == {
        "pay-as-offered", "uniform-price", "proportional-share", "iterated", "vcg",
    }  # fmt: skip
    assert any(run.scenario["clients"].get("lasting") for run in runs)
    assert any(run.share for run in runs)
    mixed = [run for run in runs if "label_mix" in run.scenario["clients"]]
    assert {run.surrogate for run in mixed} == {True, False}
    assert any(
        World(run).since(3, next(iter(run.services)), client) is not None for run in mixed for client in range(9)
    )
    assert any(run.clients for run in runs)
    assert any("total_budget" in service for run in runs for service in run.services.values())


TAMPERED = (
    ("scarce", "rounds", "sim_time", "123.0", "rounds"),
    ("scarce", "rounds", "status", "reached", "progress"),
    ("scarce", "rounds", "accuracy", "0.500000", "curves"),
    ("scarce", "rounds", "target_accuracy", "0.5", "progress"),
    ("scarce", "rounds", "reward", "3.0", "progress"),
    ("scarce", "rounds", "budget", "21.000000", "budgets"),
    ("scarce", "rounds", "offered", "1.000000", "sums"),
    ("scarce", "rounds", "spent", "1.000001", "sums"),
    ("scarce", "rounds", "wanted", "99", "sums"),
    ("scarce", "rounds", "served", "99", "sums"),
    ("scarce", "rounds", "refused", "99", "sums"),
    ("scarce", "rounds", "samples", "99", "sums"),
    ("scarce", "rounds", "mean_emd", "0.3", "sums"),
    ("scarce", "rounds", "mean_dqi", "0.3", "sums"),
    ("scarce", "rounds", "mean_bid", "0.300000", "sums"),
    ("scarce", "rounds", "mean_payment", "0.300000", "sums"),
    ("scarce", "rounds", "makespan", "123.0", "rounds"),
    ("scarce", "rounds", "policy", "lcfa", "shape"),
    ("scarce", "rounds", "dataset", "digits", "progress"),
    ("quickstart", "rounds", "accuracy", "0.500001", "progress"),
    ("scarce", "offers", "client", "21", "constraints"),
    ("scarce", "offers", "data_size", "150", "equations"),
    ("scarce", "offers", "emd", "0.5", "equations"),
    ("scarce", "offers", "dqi", "0.6", "equations"),
    ("scarce", "offers", "bid", "0.100000", "equations"),
    ("scarce", "offers", "payment", "0.100000", "constraints"),
    ("scarce", "offers", "paid", "99.000000", "constraints"),
    ("scarce", "offers", "outcome", "outbid", "constraints"),
    ("scarce", "offers", "core", "1", "constraints"),
    ("scarce", "offers", "start", "0.25", "jobs"),
    ("scarce", "offers", "end", "0.25", "jobs"),
    ("scarce", "events", "sim_time", "0.25", "events"),
    ("scarce", "events", "event", "exit", "events"),
    ("scarce", "events", "amount", "0.000001", "events"),
    ("interests", "clients", "data_size", "150", "equations"),
    ("interests", "clients", "reported_emd", "0.123", "equations"),
    ("interests", "clients", "cost", "0.000001", "equations"),
    ("interests", "clients", "profit", "0.123456", "equations"),
    ("interests", "clients", "bid", "0.123456", "equations"),
)
"""Scenario, table, column, what a liar writes into one of its cells, and the check that has to find it."""


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "table", "column", "text", "check"), TAMPERED)
def test_a_cell_that_was_changed_is_found(
    copied: Callable[..., Run], runs: list[Run], scenario: str, table: str, column: str, text: str, check: str
) -> None:
    own = [run for run in runs if run.meta["scenario"] == scenario]
    run = copied(scenario, next(at for at, run in enumerate(own) if (run.path / f"{table}.csv").exists()))
    path = run.path / f"{table}.csv"
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    at = names.index(column)
    # The first row in which the cell has another value, in the middle of the run.
    row = next(row for row in rows[len(rows) // 2 :] if row[at] not in ("", text))
    row[at] = text
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
    assert check in findings(run.path)


@pytest.mark.parametrize(
    ("file", "text", "other", "check"),
    [
        ("scenario.toml", "validation = 0.2", "validation = 0.13", "progress"),
        ("scenario.toml", "eval_samples = 200", "eval_samples = 201", "progress"),
        ("scenario.toml", "dirichlet = 0.3", "dirichlet = 0.31", "equations"),
        ("rounds.csv", ",test_accuracy", ",accuracy_on_tests", "progress"),
        ("rounds.csv", r"\d(?=\n\d)", "1", "progress"),  # the last digit of a test accuracy
    ],
)
def test_another_split_or_mix_would_be_found(
    copied: Callable[..., Run], runs: list[Run], file: str, text: str, other: str, check: str
) -> None:
    own = [run for run in runs if run.meta["scenario"] == "quickstart"]
    wanted = "dirichlet" if "dirichlet" in text else "eval_samples"
    at = next(at for at, run in enumerate(own) if wanted in (run.path / "scenario.toml").read_text())
    path = copied("quickstart", at).path / file
    before = path.read_text()
    path.write_text(re.sub(text, other, before))
    assert path.read_text() != before
    assert check in findings(path.parent)


def test_another_equation_would_be_found(copied: Callable[..., Run]) -> None:
    """The fitted parameters of eq. (6) are not the printed ones; a budget is not another one."""
    run = copied("paper-fitted")
    path = run.path / "scenario.toml"
    assert tomllib.loads(path.read_text())["dqi"] == "fitted"
    path.write_text(
        path.read_text().replace('dqi = "fitted"', 'dqi = "published"').replace("budget = 20.0", "budget = 9.0")
    )
    assert {"equations", "budgets"} <= findings(run.path).keys()
