"""Clients' devices: speeds, and bandwidths over which models travel. Played, verified, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from flmarket.core.installation import ROOT
from scenarios.build import population_of
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import load
from support.runs import change, played, table

QUICK = {"training.backend": "surrogate", "rounds": 4, "timeline.upload_seconds": 0}
UPLOAD = {"clients.upload_mbps": [0.25, 3, 40.5]}


def quick(**changes: Any) -> Scenario:
    return load("quickstart", {**QUICK, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        UPLOAD,
        UPLOAD | {"clients.download_mbps": [7], "timeline.deadline": 4, "services.digits.model_bytes": 999_999},
        UPLOAD | {"timeline.download_seconds": 0.5, "timeline.slot": 3.5, "clients.departure_rate": 0.3},
        UPLOAD | {"clients.groups": [{"name": "wired", "count": 5, "upload_mbps": [100]}], "timeline.jitter": 0.5},
        UPLOAD | {"clients.response": {"kind": "quadratic", "of": "speed"}},
    ],
)
def test_updates_travel_over_bandwidths_in_slots_too_and_the_run_is_verified(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    verdict = verify(played(quick(**changes), tmp_path))
    assert (verdict.problems, verdict.unchecked) == ([], [])


def test_an_update_is_as_large_as_its_model(tmp_path: Path) -> None:
    """The CNN has 44,426 parameters of 4 bytes: 1,421,632 bits, which take 1.421632 s at 1 Mbps."""
    run = played(quick(**{"clients.upload_mbps": [1], "timeline.seconds_per_sample": 0}), tmp_path)
    jobs = [row for row in table(run.path, "offers") if row["start"]]
    assert {round(float(row["end"]) - float(row["start"]), 6) for row in jobs} == {1.421632}
    change(run.path, "offers", {"end": "1.421633"}, lambda row: row["round"] == "1" and row["end"] != "")
    assert any("by the scenario's durations it should be 1.421632" in it for it in verify(run).problems)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            UPLOAD | {"timeline.upload_seconds": 0.5},
            "upload_seconds.*must be 0 where clients have upload_mbps, which says how long models travel, not 0.5",
        ),
        (
            {"clients.groups": [{"name": "wired", "count": 5, "upload_mbps": [100]}]},
            "clients.upload_mbps: is missing; either all clients have a bandwidth, or none has",
        ),
        ({"services.digits.model_bytes": 10}, "digits.model_bytes = 10: says nothing where no client has a bandwidth"),
        (UPLOAD | {"training.model": "resnet8"}, 'digits.model_bytes: is missing; how large a model of "digits" is'),
        ({"clients.upload_mbps": [0.0000001]}, "upload_mbps.*must be greater than or equal to 0.000001"),
    ],
)
def test_what_is_said_twice_or_not_at_all_is_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        quick(**changes)


def test_a_default_that_is_in_the_way_is_named_at_what_was_written(tmp_path: Path) -> None:
    text = (ROOT / "scenarios/builtin/quickstart.toml").read_text().replace("upload_seconds = 0.5\n", "")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("[clients]\n", "[clients]\nupload_mbps = [2.5]\n"))
    line = text.splitlines().index("[clients]") + 2
    with pytest.raises(ScenarioError) as error:
        load(str(path))
    assert str(error.value) == (
        f"{path}:{line}: clients.upload_mbps: timeline.upload_seconds must be 0 where clients have upload_mbps, which "
        "says how long models travel, not 0.5, which is its default; set it to 0"
    )


PHONES = "speed,download_mbps,upload_mbps\n0.5,8,0.25\n2.25,50,10\n1,1,1\n"


def devices(folder: Path, text: str = PHONES, **changes: Any) -> Scenario:
    path = folder / "phones.csv"
    path.write_text(text)
    return quick(**{"clients.devices": str(path), **changes})


def test_a_client_has_the_speed_and_the_bandwidths_of_one_device(tmp_path: Path) -> None:
    people = population_of(devices(tmp_path), seed=1)
    assert people.download is not None
    assert people.upload is not None
    found = set(zip(people.speed.tolist(), people.download.tolist(), people.upload.tolist(), strict=True))
    assert found == {(0.5, 8.0, 0.25), (2.25, 50.0, 10.0), (1.0, 1.0, 1.0)}


def test_a_run_with_devices_is_verified_while_the_file_is_the_same(tmp_path: Path) -> None:
    groups = [{"name": "few", "count": 4, "cores": 1}]
    energy = {"kind": "energy", "unit": {"uniform": [1, 2]}}
    scenario = devices(tmp_path, **{"clients.groups": groups, "timeline.deadline": 3, "clients.cost": energy})
    run = played(scenario, tmp_path)
    verdict = verify(run)
    assert (verdict.problems, verdict.unchecked) == ([], [])
    assert len(run.meta()["devices"]["sha256"]) == 64
    (tmp_path / "phones.csv").write_text(PHONES.replace("2.25", "2.5"))
    with pytest.raises(InputError, match=r"phones\.csv is not the file of devices with which the run was played"):
        verify(run)
    (tmp_path / "phones.csv").unlink()
    with pytest.raises(InputError, match=r"phones\.csv: cannot be read: No such file"):
        verify(run)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("speed,mbps\n", r"phones\.csv:1: must have the columns speed,download_mbps,upload_mbps, not 'speed,mbps'"),
        ("speed,download_mbps,upload_mbps\n", r"phones\.csv: has no devices"),
        (PHONES + "1,2\n", r"phones\.csv:5: has 2 values, not 3"),
        (PHONES + "1,0,3\n", r"phones\.csv:5: download_mbps must be a number from 0\.000001 to 1,000,000 with at most"),
        (PHONES + "-1,2,3\n", r"phones\.csv:5: speed must be a number from .*, not '-1'"),
        (PHONES + "1,2,1e3\n", r"phones\.csv:5: upload_mbps must be a number from .*, not '1e3'"),
    ],
)
def test_what_is_wrong_with_a_file_of_devices_is_said_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=problem):
        devices(tmp_path, text)


def test_devices_are_said_in_one_way(tmp_path: Path) -> None:
    two = {"clients.speed": [2.0], "clients.groups": [{"name": "few", "count": 4, "upload_mbps": [3]}]}
    with pytest.raises(ScenarioError) as error:
        devices(tmp_path, **two)
    problems = str(error.value).splitlines()
    assert [line.partition(": cannot be given together with clients.devices")[2] for line in problems[-2:]] == [
        ", which has a column of it"
    ] * 2
