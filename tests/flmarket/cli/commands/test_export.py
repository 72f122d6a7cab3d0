"""`flmarket export`: many runs' logs in one file."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Done = subprocess.CompletedProcess[str]
Flmarket = Callable[..., Done]


@pytest.mark.slow
def test_export_writes_what_pandas_reads(quick_run: tuple[Path, Done], tmp_path: Path, command: Flmarket) -> None:
    out, _ = quick_run
    done = command("export", str(out), "--csv", str(tmp_path / "all.csv"), "--table", "offers")
    assert done.returncode == 0
    assert done.stdout == f"{tmp_path / 'all.csv'}: offers of 1 run\n"
    offers = pd.read_csv(tmp_path / "all.csv")
    assert list(offers.columns[:3]) == ["scenario", "policy", "seed"]
    assert (offers["payment"] >= offers["bid"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--csv", "x.csv"], "nowhere"),
        (["nowhere"], "choose one file to write: either --csv FILE or --parquet FILE"),
    ],
)
def test_a_mistake_is_named_with_status_2_and_no_traceback(
    arguments: list[str], message: str, tmp_path: Path, flmarket: Flmarket
) -> None:
    done = flmarket("export", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
