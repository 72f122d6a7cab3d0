"""docs/auction-based-fl.md shows what research/results/afl.csv says, which is what research/afl.py plays."""

from pathlib import Path

import afl
import pandas as pd
import pytest

from scenarios.loader import load, points

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/afl.csv"


def test_the_table_is_that_of_the_file() -> None:
    """If this fails: python research/afl.py play --out research/results/afl.csv --print"""
    shown = (ROOT / "docs/auction-based-fl.md").read_text().splitlines()
    assert all(row in shown for row in afl.table(pd.read_csv(RESULTS)).splitlines() if set(row) - set("|-"))


def test_every_method_has_every_buyer_once() -> None:
    seats = [{it.name: it.policy for it in point.scenario.services} for point in points(load("afl"))]
    for service in seats[0]:
        assert len({seat[service] for seat in seats}) == len(seats) == 8


@pytest.mark.slow
def test_a_run_of_the_file_can_be_played_again() -> None:
    frame = pd.read_csv(RESULTS)
    kept = frame[(frame.owners == afl.FEW) & (frame.seed == 0) & (frame["point"] == 0)].set_index("service")
    for *_, service, method, images, spent, accuracy in afl.played((str(afl.FEW), "0", "0")):
        row = kept.loc[service]
        assert (row.method, row.images, row.spent, row.accuracy) == (method, images, spent, accuracy)
