"""Runs of one scenario that were trained in different arithmetic: whoever looks at them together is told."""

from pathlib import Path

import pytest

import flmarket
from fl.training import fused
from scenarios.logs.directory import RunDirectory
from scenarios.logs.mixtures import mixed_arithmetic
from support import shell
from support.scenarios import SMALL

SCENARIO = f"{SMALL}[training]\neval_samples = 50\n"

TOLD = (
    "runs of 'small' were trained with different arithmetic: {}; reference (1 run). Some of the differences between "
    "them come from that (docs/reproducibility.md)"
)


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs: one as this machine plays it, one as a machine without the compiled kernel does."""
    scenario = tmp_path / "small.toml"
    scenario.write_text(SCENARIO)
    out = tmp_path / "runs"
    flmarket.run(scenario, seeds=[0], out=out, progress=False)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(fused, "_kernels", {})
        with pytest.warns(UserWarning, match="trained with different arithmetic"):
            flmarket.run(scenario, seeds=[0, 1], out=out, progress=False)
    return out


def line(runs: Path) -> str:
    [first] = runs.glob("*/*/seed-0000")
    kernel = RunDirectory(first).meta()["kernel"]["one"]
    return TOLD.format(f"{kernel} (1 run)")


def test_reports_tell(mixed: Path) -> None:
    told = line(mixed)
    assert told in shell.flmarket("report", str(mixed), "--format", "md").stdout
    as_csv = shell.flmarket("report", str(mixed), "--format", "csv")
    assert told not in as_csv.stdout
    assert told in as_csv.stderr


def test_a_batch_that_skips_such_runs_tells(mixed: Path) -> None:
    done = shell.flmarket("run", str(mixed.parent / "small.toml"), "--seeds", "2", "--out", str(mixed))
    assert done.returncode == 0, done.stderr
    assert line(mixed) in done.stderr


def test_verify_plays_nothing_again_in_another_arithmetic(mixed: Path) -> None:
    done = shell.flmarket("verify", str(mixed), "--rerun")
    assert done.returncode == 2, done.stdout
    assert done.stdout.count("valid: ") == 2
    [obstacle] = [told for told in done.stdout.splitlines() if "not played again" in told]
    assert "seed-0001" in obstacle
    assert "service 'one' was trained in the arithmetic 'reference', which is " in obstacle


def test_backends_are_told_from_arithmetic() -> None:
    def told(*kernels: str) -> list[str]:
        return mixed_arithmetic([("paper", {"kernel": {"mnist": kernel}}) for kernel in kernels])

    [backends] = told("fused", "surrogate")
    assert backends == (
        "runs of 'paper' have different values of training.backend: real (1 run); surrogate (1 run). Compare "
        "accuracies only between runs of one backend (docs/surrogate.md)"
    )
    assert len(told("fused", "reference", "surrogate")) == 2
    assert told("surrogate", "surrogate") == []
