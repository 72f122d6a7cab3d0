"""Complete runs of another version of flmarket: whoever skips them, or looks at them beside others, tells."""

import json
from pathlib import Path

import pytest

import flmarket
from flmarket.core.installation import version
from support import shell
from support.runs import reseal
from support.scenarios import SMALL

SCENARIO = f'{SMALL}[training]\nbackend = "surrogate"\n'

MIXED = (
    f"runs of 'small' were played by different versions of flmarket: 0.0.9 (1 run); {version()} (1 run). Some of the "
    "differences between them may come from that (docs/reproducibility.md)"
)
SKIPPED = (
    "complete runs of 'small' were played by another version of flmarket, and are skipped: 0.0.9 (1 run). This is "
    f"{version()}, whose results may differ; the option fresh plays them again (docs/reproducibility.md)"
)
OTHER = f"was played by flmarket 0.0.9, and this is {version()}: what differs may come from that"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with a scenario, and a run of it as an earlier version of flmarket left it."""
    (tmp_path / "small.toml").write_text(SCENARIO)
    flmarket.run(tmp_path / "small.toml", seeds=[0], out=tmp_path / "runs", progress=False)
    [meta] = tmp_path.rglob("meta.json")
    content = json.loads(meta.read_text())
    content["versions"]["flmarket"] = "0.0.9"
    meta.write_text(json.dumps(content))
    reseal(meta.parent)
    return tmp_path


def test_a_batch_that_skips_such_runs_tells_once(old: Path) -> None:
    command = ["run", str(old / "small.toml"), "--out", str(old / "runs"), "--seeds"]
    alone = shell.flmarket(*command, "1")
    assert alone.returncode == 0, alone.stderr
    assert alone.stderr.count(SKIPPED) == 1
    beside = shell.flmarket(*command, "2")
    assert beside.stderr.count("another version of flmarket") == beside.stderr.count(SKIPPED) == 1
    assert SKIPPED not in shell.flmarket(*command, "1", "--quiet").stderr
    assert SKIPPED not in shell.flmarket(*command, "2", "--fresh").stderr
    assert "version" not in shell.flmarket(*command, "2").stderr


@pytest.fixture
def mixed(old: Path) -> Path:
    """The same folder, with a run of this version beside the other."""
    with pytest.warns(UserWarning, match="were played by different versions of flmarket"):
        flmarket.run(old / "small.toml", seeds=[0, 1], out=old / "runs", progress=False)
    return old


def test_reports_tell_where_versions_meet(mixed: Path) -> None:
    assert "version" not in shell.flmarket("report", *map(str, mixed.rglob("seed-0000")), "--format", "md").stdout
    assert shell.flmarket("report", str(mixed), "--format", "md").stdout.count(MIXED) == 1
    as_csv = shell.flmarket("report", str(mixed), "--format", "csv")
    assert MIXED not in as_csv.stdout
    assert as_csv.stderr.count(MIXED) == 1


def test_verify_names_the_version_of_a_run_with_problems(old: Path) -> None:
    assert OTHER not in shell.flmarket("verify", str(old)).stdout
    [offers] = old.rglob("offers.csv")
    offers.write_text(offers.read_text().replace(",20,", ",21,", 1))
    reseal(offers.parent)
    done = shell.flmarket("verify", str(old))
    assert done.returncode == 1
    assert f"{offers.parent}: {OTHER}" in done.stdout
