"""The example that prints what clients contributed; the values are tested with ``flmarket.contributions``."""

import subprocess
import sys
from pathlib import Path

import pytest

import flmarket


@pytest.mark.slow
def test_the_values_of_a_run(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "client_value.py"
    [run] = flmarket.run(flmarket.load("quickstart", {"rounds": 1}), "lcfa", out=tmp_path, progress=False).paths
    printed = subprocess.run(
        [sys.executable, script, run, "digits", "--rounds", "1"], check=True, capture_output=True, text=True
    ).stdout
    offers = flmarket.read(run).offers
    served = offers[(offers.service == "digits") & (offers.outcome == "served")]
    lines = printed.splitlines()
    assert len([line for line in lines if line.split()[0] == "digits"]) == len(served)
    assert f"correlations over {len(served)} clients:" in lines
