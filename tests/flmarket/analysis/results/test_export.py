"""Runs' logs as one CSV file: what tells the points of a sweep apart is a column."""

from pathlib import Path

import pandas as pd
import pytest

import flmarket
from flmarket.analysis.log_frames import TableName
from flmarket.analysis.results.export import export

FRONT = ["scenario", "policy", "seed", "services.digits.budget", "services.digits.policy", "clients.data_size"]


@pytest.mark.parametrize("table", ["rounds", "offers", "events"])
def test_swept_keys_are_columns_behind_the_seed(table: TableName, sweep_runs: Path, tmp_path: Path) -> None:
    export([sweep_runs], tmp_path / "all.csv", table)
    found = pd.read_csv(tmp_path / "all.csv", dtype=str, keep_default_na=False)
    assert list(found.columns[: len(FRONT)]) == FRONT
    points = found[FRONT[3:]].drop_duplicates()
    assert sorted(map(tuple, points.to_numpy())) == [
        ("", "", ""),
        ("6", "hqfa", "[50, 100]"),
        ("7.5", "lcfa", "[60, 90]"),
    ]
    assert found[FRONT].drop_duplicates().shape == (3, len(FRONT))


def test_frames_have_the_same_columns_as_the_file(sweep_runs: Path, tmp_path: Path) -> None:
    export([sweep_runs], tmp_path / "all.csv")
    rounds = flmarket.read(sweep_runs).rounds
    assert list(rounds.columns) == list(pd.read_csv(tmp_path / "all.csv").columns)
    assert rounds.groupby("services.digits.budget").size().to_dict() == {6.0: 6, 7.5: 6}
    assert rounds["services.digits.budget"].isna().sum() == 6


def test_without_a_sweep_there_are_no_such_columns(sweep_runs: Path, tmp_path: Path) -> None:
    [alone] = [run for run in flmarket.read(sweep_runs).runs if not run.setting.sweep]
    export([alone.directory.path], tmp_path / "one.csv")
    assert list(pd.read_csv(tmp_path / "one.csv").columns[:5]) == ["scenario", "policy", "seed", "round", "sim_time"]
