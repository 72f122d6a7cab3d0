"""Logs as Parquet."""

from pathlib import Path

import pandas as pd
import pytest

from flmarket.analysis.log_frames import TableName
from flmarket.analysis.results.export import export
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.running.batch import run_all
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'flmarket[parquet]')")


class Observer:
    def __getattr__(self, name: str) -> object:
        return lambda *_: None


@pytest.mark.slow
@pytest.mark.parametrize("table", ["rounds", "offers", "events"])
def test_parquet_holds_what_csv_does(table: TableName, tmp_path: Path) -> None:
    from flmarket.analysis.results.export import export_parquet

    shelf = Shelf()
    scenario = load("quickstart", ["rounds=3", "training.eval_samples=100"])
    run_all(plan([scenario], ["lcfa"], [0, 1], tmp_path / "runs", shelf), shelf, Observer(), RunOptions(workers=0))  # type: ignore[arg-type]
    assert export_parquet([tmp_path / "runs"], tmp_path / "all.parquet", table) == 2
    export([tmp_path / "runs"], tmp_path / "all.csv", table)
    found, expected = pd.read_parquet(tmp_path / "all.parquet"), pd.read_csv(tmp_path / "all.csv")
    assert list(found.columns) == list(expected.columns)
    assert len(found) == len(expected)
    for name in found:
        pd.testing.assert_series_equal(found[name], expected[name], check_dtype=False)


@pytest.mark.parametrize("table", ["rounds", "offers", "events"])
def test_parquet_has_the_columns_of_a_sweep(table: TableName, sweep_runs: Path, tmp_path: Path) -> None:
    from flmarket.analysis.results.export import export_parquet

    export_parquet([sweep_runs], tmp_path / "all.parquet", table)
    export([sweep_runs], tmp_path / "all.csv", table)
    found, expected = pd.read_parquet(tmp_path / "all.parquet"), pd.read_csv(tmp_path / "all.csv")
    assert list(found.columns) == list(expected.columns)
    for name in found:
        pd.testing.assert_series_equal(found[name], expected[name], check_dtype=False)


def test_no_complete_run_is_an_error(tmp_path: Path) -> None:
    from flmarket.analysis.results.export import export_parquet

    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no complete run"):
        export_parquet([tmp_path / "empty"], tmp_path / "none.parquet")
