"""`flmarket export`: many runs' logs in one file."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from support.runs import reseal

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
        (["nowhere", "--parquet", "x", "--shape", "wide"], "--shape wide is for --csv"),
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


@pytest.mark.parametrize(
    ("old", "new", "shape", "message"),
    [
        ("1,", "x,", "wide", "rounds.csv: cannot be read: "),
        ("1,", "1,1,", "long", "rounds.csv: cannot be read: "),
        ("2,", "2,1,", "long", "rounds.csv: cannot be read: "),
    ],
)
def test_a_table_that_no_run_has_written_is_an_input_error(
    old: str, new: str, shape: str, message: str, quick_run: tuple[Path, Done], tmp_path: Path, flmarket: Flmarket
) -> None:
    shutil.copytree(quick_run[0], tmp_path / "runs")
    [meta] = tmp_path.rglob("meta.json")
    rounds = meta.with_name("rounds.csv")
    rounds.write_text(rounds.read_text().replace(f"\n{old}", f"\n{new}", 1))
    reseal(meta.parent)
    done = flmarket("export", "runs", "--csv", "-", "--shape", shape, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
