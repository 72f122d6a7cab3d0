"""`flmarket value`: a table on stdout and in a file, and one line for whatever is wrong."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, flmarket: Flmarket) -> Path:
    """A run with real training of embedded data."""
    out = tmp_path_factory.mktemp("real")
    done = flmarket("run", "quickstart", "--rounds", "3", "--policy", "lcfa", "--out", "runs", "--quiet", cwd=out)
    assert done.returncode == 0, done.stderr
    return next(out.rglob("rounds.csv")).parent


@pytest.mark.slow
def test_values_of_several_rounds_and_their_correlations(run: Path, tmp_path: Path, flmarket: Flmarket) -> None:
    table = tmp_path / "values.csv"
    done = flmarket("value", str(run), "--service", "digits", "--rounds", "2..3", "--csv", str(table))
    assert done.returncode == 0, done.stderr
    rows, offers = pd.read_csv(table), pd.read_csv(run / "offers.csv")
    own = offers[(offers.service == "digits") & offers["round"].isin([2, 3]) & (offers.outcome == "served")]
    assert rows[["round", "client"]].to_numpy().tolist() == own[["round", "client"]].to_numpy().tolist()
    assert (rows["value"] - (rows["accuracy"] - rows["accuracy_without"])).abs().max() < 2e-6
    *_, summary, quality, pay, written = done.stdout.splitlines()
    assert summary == f"digits: {len(own)} values from 2 rounds."
    assert quality.startswith(f"Correlation of value with DQI, n = {len(own)}: ")
    assert pay.startswith(f"Correlation of value with payment, n = {len(own)}: ")
    assert written == f"{table}: {len(own)} rows"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "choose the rounds: either --round N or --rounds FIRST..LAST"),
        (("--round", "1", "--rounds", "1..2"), "choose the rounds: either --round N or --rounds FIRST..LAST"),
        (("--rounds", "2..1"), "--rounds '2..1' is not a range such as 1..12"),
        (("--rounds", "all"), "--rounds 'all' is not a range such as 1..12"),
        (("--round", "9"), "unknown round 9; the run has rounds 1 to 3"),
    ],
)
def test_one_line_for_whatever_is_wrong(
    arguments: tuple[str, ...], problem: str, run: Path, flmarket: Flmarket
) -> None:
    done = flmarket("value", str(run), "--service", "digits", *arguments)
    assert done.returncode == 2
    assert done.stderr == f"{problem}\n"
