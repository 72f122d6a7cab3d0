"""Groups of clients that free ride, have wrong labels or poison: what training gets of them, and who refuses them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl.training.jobs import Conduct
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf, population_of, population_spec
from scenarios.calibration.surrogate import calibrate_surrogate
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load, parse
from support.runs import RESULTS, interrupt, planned, played, reseal, table

RIDERS = {"name": "riders", "count": 6, "free_ride": "random"}
SMALL = {"rounds": 3, "training.model": "logistic", "training.local_epochs": 1}


def grouped(*groups: dict[str, Any], **changes: Any) -> Scenario:
    return load("quickstart", {**SMALL, "clients.groups": list(groups), **changes})


def test_jobs_say_what_the_clients_of_each_group_do() -> None:
    noisy = {"name": "noisy", "count": 2, "label_noise": 0.3, "label_flip": 0.1, "update_scale": -2}
    none, away = {"name": "none", "count": 3}, {"name": "away", "count": 0, "free_ride": "old"}
    scenario = grouped(none, away, noisy, {"name": "old", "count": 1, "free_ride": "old"})
    expected = [None, Conduct(label_noise=0.3, label_flip=0.1, update_scale=-2.0), Conduct(update="old"), None]
    assert [group.conduct for group in population_spec(scenario).groups] == expected
    held = population_of(scenario, 0).held(1)
    clients = [7, 2, 4, 5]
    assert [job.conduct for job in held.jobs("digits", 0, clients)] == [None, None, expected[1], expected[2]]
    assert parse(dumps(scenario)) == scenario


def test_a_scenario_without_them_is_written_as_before() -> None:
    written = dumps(grouped({"name": "plain", "count": 3}))
    assert not any(key in written for key in ("label_noise", "label_flip", "free_ride", "update_scale"))


def test_clients_that_do_nothing_of_the_kind_give_the_same_bytes_as_no_group(tmp_path: Path) -> None:
    plain = played(grouped(rounds=2), tmp_path / "plain").path
    same = played(grouped({**RIDERS, "count": 0}, rounds=2), tmp_path / "same").path
    assert (plain / "rounds.csv").read_bytes() == (same / "rounds.csv").read_bytes()


def test_free_riders_are_paid_as_others_learn_nothing_and_the_run_is_verified_and_repeats(tmp_path: Path) -> None:
    honest, ridden = (played(grouped(*groups), tmp_path / name) for name, groups in (("a", ()), ("b", (RIDERS,))))
    assert verify(ridden).problems == []
    assert rerun(ridden, Shelf()) == []
    first = [
        [
            [row[key] for key in ("service", "client", "paid")]
            for row in table(run.path, "offers")
            if row["round"] == "1"
        ]
        for run in (honest, ridden)
    ]
    assert first[0] == first[1]  # services do not see who works
    assert any(int(client) < 6 for _, client, paid in first[1] if paid)
    logs = Logs.read_whole(ridden)
    jobs = logs.jobs(1, logs.offers_of(1, "digits"))  # from which a training is replayed
    assert all(job.conduct == (Conduct(update="random") if job.client < 6 else None) for job in jobs)
    assert any(job.conduct for job in jobs)
    means = [np.mean([float(row["accuracy"]) for row in table(run.path, "rounds")]) for run in (honest, ridden)]
    assert means[1] < means[0] - 0.05
    file = ridden.path / "scenario.toml"
    file.write_text(file.read_text().replace('free_ride = "random"', 'free_ride = "old"'))
    reseal(ridden.path)
    assert any("scenario.toml" in problem for problem in verify(ridden).problems)
    assert rerun(ridden, Shelf()) != []


@pytest.mark.parametrize("key", ["label_noise", "label_flip"])
def test_wrong_labels_are_learned(key: str, tmp_path: Path) -> None:
    run = played(grouped({"name": "all", "count": 16, key: 1.0}), tmp_path)
    last = [float(row["accuracy"]) for row in table(run.path, "rounds") if row["round"] == "3"]
    assert max(last) < 0.1  # by chance, a tenth


def test_an_interrupted_run_of_dishonest_clients_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    scenario = grouped(RIDERS, {"name": "noisy", "count": 5, "label_noise": 0.5})
    whole = played(scenario, tmp_path / "whole").path
    interrupt(planned(scenario, tmp_path / "resumed"), Shelf(), after=2)
    resumed = played(scenario, tmp_path / "resumed").path
    assert [(resumed / name).read_bytes() for name in RESULTS] == [(whole / name).read_bytes() for name in RESULTS]


WRONG = [
    ("label_noise = 1.2", "label_noise: must be less than or equal to 1, not 1.2"),
    ("label_flip = -0.1", "label_flip: must be greater than or equal to 0, not -0.1"),
    ('free_ride = "never"', "free_ride: must be 'old' or 'random', not \"never\""),
    ("update_scale = 1e7", "update_scale: must be less than or equal to 1000000, not 10,000,000"),
]


@pytest.mark.parametrize(("line", "problem"), WRONG)
def test_wrong_values_are_named_with_their_line(line: str, problem: str, two_services: str) -> None:
    text = two_services.replace("[[services]]", f'[[clients.groups]]\nname = "a"\ncount = 1\n{line}\n\n[[services]]', 1)
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    number = text.splitlines().index(line) + 1
    assert f":{number}: clients.groups.a.{problem}" in str(caught.value)


@pytest.mark.parametrize("backend", ["surrogate", "noiseless"])
@pytest.mark.parametrize("key", ["label_noise", "label_flip", "free_ride", "update_scale"])
def test_curves_are_those_of_honest_training(backend: str, key: str) -> None:
    value = "old" if key == "free_ride" else 0.5
    with pytest.raises(ScenarioError, match=rf"clients.groups.a.{key}: needs models that are trained, and backend = "):
        grouped({"name": "a", "count": 1, key: value}, **{"training.backend": backend})


def test_a_curve_is_fitted_to_no_dishonest_clients(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a surrogate's curves are those of honest training, not of riders; remove"):
        calibrate_surrogate(grouped(RIDERS), tmp_path, Shelf(), print, runs=1, held_out=1)
