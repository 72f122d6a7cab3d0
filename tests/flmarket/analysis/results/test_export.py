"""Runs' logs as one file, CSV or Parquet: what tells the points of a sweep apart is a column."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import flmarket
from flmarket.analysis.log_frames import TableName
from flmarket.analysis.results.export import export, export_parquet
from flmarket.core.errors import InputError

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


@pytest.mark.parametrize("table", ["rounds", "offers", "events"])
def test_parquet_holds_what_csv_does(table: TableName, sweep_runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'flmarket[parquet]')")
    assert export_parquet([sweep_runs], tmp_path / "all.parquet", table) == 3
    export([sweep_runs], tmp_path / "all.csv", table)
    found, expected = pd.read_parquet(tmp_path / "all.parquet"), pd.read_csv(tmp_path / "all.csv")
    assert list(found.columns) == list(expected.columns)
    for name in found:
        pd.testing.assert_series_equal(found[name], expected[name], check_dtype=False)


@pytest.mark.parametrize("into", [export, export_parquet])
def test_no_complete_run_is_an_error(into: Callable[..., int], tmp_path: Path) -> None:
    target = tmp_path / "all"
    target.write_text("precious")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no complete run"):
        into([tmp_path / "empty"], target)
    assert target.read_text() == "precious"
