"""Clients' devices: bandwidths, over which models travel. Played, verified, and what is wrong with the rest."""

from pathlib import Path
from typing import Any

import pytest

from flmarket.analysis.verification.verify import verify
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
