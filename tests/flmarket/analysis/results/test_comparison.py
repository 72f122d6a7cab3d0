"""What a fork came to: sums and their rounds, and in words what happened first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flmarket.analysis.results.fork_effect import Comparison
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.results.setting import RunSetting
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory

SCENARIO = """\
name = "two"
rounds = 4
dqi = "published"
[clients]
count = 5
cores = 1
data_size = [40]
emd = [0.2]
cost = { per_sample = 0.05, per_emd = 1.0 }
"""

SERVICE = """
[[services]]
name = "{}"
dataset = "digits"
budget = 10
target_accuracy = 0.5
reward_base = 4
policy = "lcfa"
"""

Offers = Sequence[tuple[str, int, str, str]]
"""Service, client, payment and outcome."""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return parse(SCENARIO + SERVICE.format("mnist") + SERVICE.format("fashion"))


Tables = dict[str, pd.DataFrame]


def logged(number: int, offers: Offers, accuracy: str = "0.250000", status: str = "training") -> Tables:
    """A round as it is read; services gain accuracy alike."""
    made = pd.DataFrame(
        [(number, service, client, float(money) * 1e6, outcome) for service, client, money, outcome in offers],
        columns=["round", "service", "client", "payment", "outcome"],
    ).astype({"round": int, "client": int, "payment": float})
    made["paid"] = made["payment"].where(made["outcome"] == "served").astype(float)
    served = made[made["outcome"] == "served"]
    reward = {"mnist": 2**0.5, "fashion": 0.0 if status == "waiting" else 2**0.5}
    rounds = [
        (number, name, status, float(accuracy), reward[name], own["paid"].sum(), len(own))
        for name in ("mnist", "fashion")
        for own in [served[served["service"] == name]]
    ]
    columns = ["round", "service", "status", "test_accuracy", "reward", "spent", "served"]
    rows = pd.DataFrame(rounds, columns=columns).assign(policy="lcfa")
    return {
        "rounds": rows.assign(**dict.fromkeys(("accuracy", "budget", "offered", "wanted", "refused", "sim_time"), 0)),
        "offers": made,
    }


def compared(scenario: Scenario, one: list[Tables], other: list[Tables], rounds: int = 4) -> Comparison:
    setting = RunSetting(scenario.model_copy(update={"rounds": rounds}))
    tables = ({name: pd.concat([part[name] for part in run]) for name in ("rounds", "offers")} for run in (one, other))
    return Comparison(*(RunResult.of(setting, "lcfa", 0, RunDirectory(Path()), run["rounds"], run) for run in tables))


def rows_of(comparison: Comparison) -> dict[tuple[str, str], Any]:
    """The lines of the table of differences by name and measure; None where there is nothing."""
    found = comparison.differences().astype(object)
    return {(row.name, row.measure): row for row in found.where(found.notna(), None).itertuples(index=False)}


CALM: Offers = [("mnist", 4, "2.000000", "served"), ("fashion", 4, "1.500000", "outbid")]


@pytest.mark.parametrize(
    ("offers", "words"),
    [
        (
            [("mnist", 4, "2.000000", "outbid"), ("fashion", 4, "3.000000", "served")],
            ["mnist lost client 4 to fashion"],
        ),
        (
            [("fashion", 4, "1.500000", "served")],
            ["mnist no longer wanted client 4", "fashion won client 4, which had served mnist"],
        ),
        ([("mnist", 4, "2.000000", "outbid"), CALM[1]], ["mnist lost client 4, which was outbid"]),
        ([("mnist", 4, "2.000000", "dropped"), CALM[1]], ["mnist lost client 4, which did not deliver in time"]),
        ([("mnist", 4, "2.500000", "served"), CALM[1]], ["mnist paid client 4 2.500000 instead of 2.000000"]),
        ([*CALM, ("mnist", 1, "1.000000", "served")], ["mnist won client 1"]),
        ([*CALM, ("mnist", 1, "1.000000", "outbid")], ["mnist wanted client 1, which refused"]),
        ([CALM[0]], ["fashion no longer wanted client 4, which had refused"]),
    ],
)
def test_the_first_round_that_differs_is_told_in_words(offers: Offers, words: list[str], scenario: Scenario) -> None:
    fork = [logged(1, CALM), logged(2, offers), logged(3, [])]
    found = compared(scenario, [logged(n, CALM) for n in (1, 2, 3)], fork)
    assert found.first == 2
    assert list(found.sentences()) == [f"round 2: {sentence}" for sentence in words]


def test_runs_that_are_alike_have_no_first_difference(scenario: Scenario) -> None:
    rounds = [logged(n, CALM) for n in (1, 2)]
    found = compared(scenario, rounds, rounds)
    assert list(found.sentences()) == ["Nothing differs: the change had no effect."]
    assert not any(row.rounds or row.kind == "client" for row in rows_of(found).values())


def test_sums_and_rounds_of_services_and_clients(scenario: Scenario) -> None:
    """The fork ends a round earlier, as its services leave: it keeps its accuracy, and spends nothing more."""
    won: Offers = [("mnist", 4, "2.000000", "served"), ("mnist", 2, "1.250000", "served")]
    original = [logged(1, CALM), logged(2, CALM), logged(3, CALM)]
    fork = [logged(1, CALM), logged(2, won, "0.500000", "reached")]
    found = compared(scenario, original, fork)
    rows = {key: row[3:] for key, row in rows_of(found).items()}
    assert rows["mnist", "final accuracy"] == (25.0, 50.0, 25.0, 2, "2-3")
    assert rows["mnist", "AUC"] == (25.0, 43.75, 18.75, 2, "2-3")
    assert rows["mnist", "spent"] == (6.0, 5.25, -0.75, 2, "2-3")
    assert rows["mnist", "served"] == (3.0, 3.0, 0.0, 2, "2-3")
    assert rows["mnist", "exit round"] == (None, 2.0, None, 2, "2")
    assert rows["mnist", "normalised reward"][3:] == (None, "")
    assert rows["2", "income"] == (0.0, 1.25, 1.25, 2, "2")
    assert rows["4", "jobs"] == (3.0, 2.0, -1.0, 3, "3")
    assert ("0", "income") not in rows
    assert "mnist reached its target in round 2; in the original it never reached its target" in found.sentences()


def test_a_service_that_arrives_later_counts_from_its_arrival() -> None:
    """As reports do: before it arrives, a service has the accuracy of its initial model, and no reward."""
    late = parse(SCENARIO + SERVICE.format("mnist") + SERVICE.format("fashion") + "arrival = 3\n")
    waiting = [logged(number, [], accuracy="0.100000", status="waiting") for number in (1, 2)]
    original = [*waiting, *(logged(number, CALM, accuracy="0.300000") for number in (3, 4))]
    fork = [*waiting, *(logged(number, CALM[:1], accuracy="0.400000") for number in (3, 4))]
    found = rows_of(compared(late, original, fork))
    auc = found["fashion", "AUC"]
    assert (auc.original, auc.fork) == pytest.approx((30.0, 40.0))
    assert found["mnist", "AUC"].original == pytest.approx(20.0)
    assert found["fashion", "normalised reward"].original == pytest.approx(1.41421356237 / 2)
    ended = rows_of(compared(late, original[:3], original[:3]))
    assert ended["fashion", "AUC"].original == pytest.approx(30.0)


def test_of_a_run_that_was_interrupted_only_the_rounds_that_were_played_count(scenario: Scenario) -> None:
    """Its services have not left, so nothing is known of later rounds."""
    original = [logged(1, CALM, accuracy="0.200000"), logged(2, CALM, accuracy="0.400000")]
    fork = [logged(1, CALM, accuracy="0.200000"), logged(2, CALM[:1], accuracy="0.300000")]
    comparison = compared(scenario, original, fork, rounds=2)
    found = rows_of(comparison)
    assert (found["mnist", "AUC"].original, found["mnist", "AUC"].fork) == pytest.approx((30.0, 25.0))
