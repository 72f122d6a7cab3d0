"""Runs of every built-in scenario, worked out again from their files alone: no column is wrong, or it is seen."""

import csv
import re
from collections import Counter
from collections.abc import Callable

import pytest

from audit.checks import wrong
from audit.runs import Run
from audit.world import World
from scenarios.builtin import builtin_names
from scenarios.loader import load
from scenarios.logs.columns import ROUNDS


@pytest.mark.slow
def test_no_column_is_wrong(runs: list[Run]) -> None:
    assert {run.path: found for run in runs if (found := wrong(run))} == {}


@pytest.mark.slow
def test_no_column_is_wrong_of_other_seeds_and_longer_trainings(more_runs: list[Run]) -> None:
    assert {run.path: found for run in more_runs if (found := wrong(run))} == {}


def test_what_is_checked_happens_in_the_runs(runs: list[Run]) -> None:
    """A check of what never happens would pass for ever."""
    # The audit follows rounds in which services decide once and that end with their work; of others,
    # tests/scenarios/test_continuous.py and test_turns.py do.
    slots = {name for name in builtin_names() if load(name).once}
    assert {run.meta["scenario"] for run in runs} == slots
    assert len({run.meta["policy"] for run in runs}) == 6
    outcomes = Counter(outcome for run in runs for outcome in run.offers.outcome)
    assert min(outcomes["served"], outcomes["outbid"], outcomes["dropped"]) > 50
    assert {status for run in runs for status in run.rounds.status} == {"waiting", "training", "reached", "left"}
    assert {event for run in runs for event in run.events.event} >= {"exit", "evaluate", "pay"}
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
    assert any(run.truth is not None for run in runs)
    assert any("total_budget" in service for run in runs for service in run.services.values())


OTHER = {"status": "reached", "policy": "mirror", "dataset": "digits", "outcome": "outbid", "event": "exit"}
"""Other words for cells of text; other numbers are larger."""
SUMS = [column.name for column in ROUNDS.columns if column.rule == "totals"]
"""Sums over the offers of rounds.csv: verify derives them from offers.csv alone, and test_mutations.py shows it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "table"), [("scarce", "rounds"), ("scarce", "offers"), ("scarce", "events"), ("interests", "clients")]
)
def test_another_value_in_any_column_is_seen(copied: Callable[..., Run], scenario: str, table: str) -> None:
    run = copied(scenario, lambda run: (run.path / f"{table}.csv").exists())
    path = run.path / f"{table}.csv"
    untouched = path.read_text()
    names, *rows = csv.reader(untouched.splitlines())
    missed = []
    for at, name in enumerate(names):
        if name == "service" or (table == "rounds" and name in SUMS):
            continue
        # The first row in which the cell has another value, in the middle of the run.
        place = next(
            place for place in range(len(rows) // 2, len(rows)) if rows[place][at] not in ("", OTHER.get(name))
        )
        changed = [list(row) for row in rows]
        changed[place][at] = OTHER.get(name) or f"{float(rows[place][at]) + 1:.6f}".removesuffix(".000000")
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([names, *changed])
        if not wrong(Run(run.path)):
            missed.append(name)
    assert missed == []


@pytest.mark.parametrize(
    ("file", "text", "other", "column"),
    [
        ("scenario.toml", "validation = 0.2", "validation = 0.13", "rounds: accuracy"),
        ("scenario.toml", "eval_samples = 200", "eval_samples = 201", "rounds: accuracy"),
        ("scenario.toml", "dirichlet = 0.3", "dirichlet = 0.31", "offers: emd"),
        ("rounds.csv", r"\d(?=\n\d)", "1", "rounds: test_accuracy"),  # its last digit
    ],
)
def test_another_split_or_mix_is_seen(
    copied: Callable[..., Run], file: str, text: str, other: str, column: str
) -> None:
    run = copied("quickstart", lambda run: re.search(text, (run.path / file).read_text()) is not None)
    path = run.path / file
    before = path.read_text()
    path.write_text(re.sub(text, other, before))
    assert path.read_text() != before
    assert column in wrong(Run(run.path))


def test_another_equation_or_budget_is_seen(copied: Callable[..., Run]) -> None:
    run = copied("paper-fitted", lambda run: run.scenario["dqi"] == "fitted")
    path = run.path / "scenario.toml"
    text = path.read_text().replace('dqi = "fitted"', 'dqi = "published"').replace("budget = 20.0", "budget = 9.0")
    path.write_text(text)
    assert {"offers: dqi", "rounds: budget"} <= set(wrong(Run(run.path)))
