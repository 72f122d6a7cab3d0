"""`flmarket export`: many runs' logs in one file."""

from pathlib import Path

import pandas as pd
import pytest

from support.shell import Command, Done


@pytest.mark.slow
def test_export_writes_what_pandas_reads(quick_run: tuple[Path, Done], tmp_path: Path, command: Command) -> None:
    out, _ = quick_run
    done = command("export", str(out), "--csv", str(tmp_path / "all.csv"), "--table", "offers")
    assert done.returncode == 0
    assert done.stdout == f"{tmp_path / 'all.csv'}: offers of 1 run\n"
    offers = pd.read_csv(tmp_path / "all.csv")
    assert list(offers.columns[:3]) == ["scenario", "policy", "seed"]
    assert (offers["payment"] >= offers["bid"]).all()
