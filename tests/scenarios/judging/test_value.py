"""`flmarket value`: leaving a client out, against a run's own log and against training without it."""

import csv
from pathlib import Path

import pytest

from des.rows import Outcome
from fl.errors import InputError
from scenarios.build import Shelf, build_federation
from scenarios.judging.evidence import Logs
from scenarios.judging.value import Value, correlations, values
from scenarios.judging.verify import read_logs
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.running.batch import plan
from scenarios.running.runner import execute
from support.runs import reseal


def play(out: Path, *changes: str) -> RunDirectory:
    [run] = plan([load("quickstart", ["rounds=3", *changes])], ["lcfa"], [0], out, Shelf())
    execute(run, Shelf())
    return run.directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return play(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def logs(run: RunDirectory) -> Logs:
    found, _ = read_logs(run)
    assert found is not None
    return found


def test_a_value_is_the_accuracy_with_less_that_without(run: RunDirectory, logs: Logs) -> None:
    """All services are trained here, each round whole up to the last, and that one without the client."""
    found = list(values(run, "digits", [3], Shelf()))
    served = [row for row in logs.offers_of[3, "digits"] if row["outcome"] is Outcome.SERVED]
    assert [(it.client, it.paid, it.dqi) for it in found] == [(it["client"], it["paid"], it["dqi"]) for it in served]
    for one in found[:3]:
        federation = build_federation(logs.scenario, logs.seed, Shelf())
        for number in (1, 2, 3):
            rows = [row for row in logs.offers_in[number] if row["outcome"] is Outcome.SERVED]
            others = [row for row in rows if (number, row["service"], row["client"]) != (3, "digits", one.client)]
            federation.train_round(number, logs.jobs(number, others))
        assert federation.accuracy("digits") == one.without
        assert one.value == one.accuracy - one.without
        federation.close()


def test_the_accuracy_with_all_is_that_of_the_log(run: RunDirectory, logs: Logs) -> None:
    found = {it.round: it.accuracy for it in values(run, "strokes", [1, 3], Shelf(), workers=2)}
    assert sorted(found) == [1, 3]
    for number, accuracy in found.items():
        [row] = [row for row in logs.rows_of[number] if row["service"] == "strokes"]
        assert f"{accuracy:.6f}" == f"{row['accuracy']:.6f}"


def test_misreports_weigh_as_in_the_run(tmp_path: Path) -> None:
    """Training gives the log's accuracy only with what clients hold, weighted by what they report."""
    options = ["clients.behaviour.kind=misreport", "clients.behaviour.options.size=2.0"]
    assert list(values(play(tmp_path, *options), "digits", [2], Shelf()))


@pytest.mark.parametrize(
    "changes",
    [
        ["clients.lasting.persistence=0.8"],
        ["clients.emd=[]", "clients.label_mix.dirichlet=0.3", "clients.data_size=[40, 80]"],
    ],
)
def test_label_mixes_are_those_of_the_run(changes: list[str], tmp_path: Path) -> None:
    """The log does not hold them; data of another mix with the same EMD give another accuracy."""
    assert list(values(play(tmp_path, *changes), "digits", [2], Shelf()))


def test_another_accuracy_than_the_log_has_is_an_error(tmp_path: Path) -> None:
    run = play(tmp_path)
    path = run.path / "rounds.csv"
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    at = rows[0].index("accuracy")
    line = next(row for row in rows if row[0] == "2" and "digits" in row)
    was, line[at] = line[at], "0.123456"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    reseal(run.path)
    with pytest.raises(InputError) as caught:
        list(values(run, "digits", [3], Shelf()))
    assert str(caught.value) == (
        f"{run.path}: round 2: digits has an accuracy of {was} when its training is replayed, 0.123456 in the log; "
        "see flmarket verify --rerun"
    )


def test_a_run_on_the_surrogate_has_no_values(tmp_path: Path) -> None:
    run = play(tmp_path, "training.backend=surrogate")
    with pytest.raises(InputError) as caught:
        list(values(run, "digits", [1], Shelf()))
    assert str(caught.value) == (
        f"{run.path}: nothing was trained: training.backend is 'surrogate'; value needs 'real'"
    )


@pytest.mark.parametrize(
    ("service", "number", "problem"),
    [
        ("digit", 1, "unknown service 'digit'; did you mean 'digits'?"),
        ("digits", 4, "unknown round 4; the run has rounds 1 to 3"),
        ("digits", 0, "unknown round 0; the run has rounds 1 to 3"),
    ],
)
def test_what_there_is_not(service: str, number: int, problem: str, run: RunDirectory) -> None:
    with pytest.raises(InputError) as caught:
        list(values(run, service, [number], Shelf()))
    assert str(caught.value) == problem


def test_a_service_that_has_left_is_named(tmp_path: Path) -> None:
    run = play(tmp_path, "services.digits.target_accuracy=0.1")
    with pytest.raises(InputError, match="service 'digits' had left before round 3"):
        list(values(run, "digits", [3], Shelf()))


def value(dqi: float, paid: float, without: float) -> Value:
    return Value(1, 0, 100, 0.4, dqi, 1, int(paid * 1_000_000), 0.9, without)


def test_correlations_with_their_number() -> None:
    assert list(correlations([value(0.1, 3.0, 0.8), value(0.2, 2.0, 0.7), value(0.3, 1.0, 0.6)])) == [
        "Correlation of value with DQI, n = 3: +1.00.",
        "Correlation of value with payment, n = 3: -1.00.",
    ]
    assert next(correlations([value(0.1, 3.0, 0.8), value(0.1, 2.0, 0.7), value(0.1, 1.0, 0.8)])) == (
        "Correlation of value with DQI, n = 3: not defined, as one of the two never varies."
    )
    assert list(correlations([value(0.1, 3.0, 0.8)]))[1] == (
        "Correlation of value with payment, n = 1: not defined for fewer than 3 values."
    )
