"""Runs of which some belong to a sweep."""

from pathlib import Path

import pytest

import flmarket


@pytest.fixture(scope="session")
def sweep_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run without a sweep, and two of one: over a number, a policy and a list."""
    out = tmp_path_factory.mktemp("sweep") / "runs"
    sweep = [
        {"services.digits.budget": budget, "services.digits.policy": policy, "clients.data_size": sizes}
        for budget, policy, sizes in [(6, "hqfa", [50, 100]), (7.5, "lcfa", [60, 90])]
    ]
    for changes in ({}, {"runs": sweep}):
        scenario = flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 2} | changes)
        flmarket.run(scenario, out=out, progress=False)
    return out
