"""Runs of one scenario by different versions of flmarket, or in different arithmetic: who looks at both is told."""

import json
from pathlib import Path

import pytest

import flmarket
from flmarket.core.installation import version
from scenarios.logs.directory import RunDirectory
from scenarios.logs.unlike_runs import mixed_arithmetic
from support import shell
from support.runs import reseal
from support.scenarios import SMALL

SKIPPED = (
    "complete runs of 'small' were played by another version of flmarket, and are skipped: 0.0.9 (1 run). This is "
    f"{version()}, whose results may differ; the option fresh plays them again (docs/reproducibility.md)"
)
OTHER_VERSION = f"was played by flmarket 0.0.9, and this is {version()}: what differs may come from that"
VERSIONS = (
    f"runs of 'small' were played by different versions of flmarket: 0.0.9 (1 run); {version()} (1 run). Some of the "
    "differences between them may come from that (docs/reproducibility.md)"
)
ARITHMETIC = (
    "runs of 'small' were trained with different arithmetic: {} (1 run); reference (1 run). Some of the differences "
    "between them come from that (docs/reproducibility.md)"
)


@pytest.fixture
def first(tmp_path: Path) -> RunDirectory:
    """A run of a scenario in a folder."""
    (tmp_path / "small.toml").write_text(f"{SMALL}[training]\neval_samples = 50\n")
    flmarket.run(tmp_path / "small.toml", seeds=[0], out=tmp_path / "runs", progress=False)
    [path] = tmp_path.rglob("seed-0000")
    return RunDirectory(path)


def record(run: RunDirectory, key: str, **values: str) -> None:
    """Let meta.json say something else, as if it had been so."""
    meta = run.meta()
    (run.path / "meta.json").write_text(json.dumps(meta | {key: meta[key] | values}))
    reseal(run.path)


def play_another(folder: Path, told: str) -> None:
    with pytest.warns(UserWarning, match=told):
        flmarket.run(folder / "small.toml", seeds=[0, 1], out=folder / "runs", progress=False)


@pytest.fixture(params=["versions", "arithmetic"])
def mixture(request: pytest.FixtureRequest, first: RunDirectory, tmp_path: Path) -> str:
    """What is to be told of two runs in the folder."""
    if request.param == "versions":
        record(first, "versions", flmarket="0.0.9")
        play_another(tmp_path, "were played by different versions of flmarket")
        return VERSIONS
    own = first.meta()["kernel"]["one"]
    record(first, "kernel", one="reference")  # as on a machine without the compiled kernel
    play_another(tmp_path, "trained with different arithmetic")
    return ARITHMETIC.format(own)


def test_reports_tell(mixture: str, first: RunDirectory, tmp_path: Path) -> None:
    assert "different" not in shell.flmarket("report", str(first.path), "--format", "md").stdout
    assert shell.flmarket("report", str(tmp_path), "--format", "md").stdout.count(mixture) == 1
    as_csv = shell.flmarket("report", str(tmp_path), "--format", "csv")
    assert mixture not in as_csv.stdout
    assert as_csv.stderr.count(mixture) == 1


def test_a_batch_that_skips_runs_in_other_arithmetic_tells(first: RunDirectory, tmp_path: Path) -> None:
    told = ARITHMETIC.format(first.meta()["kernel"]["one"])
    record(first, "kernel", one="reference")
    done = shell.flmarket("run", "small.toml", "--seeds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert told in done.stderr


@pytest.mark.slow
def test_a_batch_that_skips_runs_of_another_version_tells_once(first: RunDirectory, tmp_path: Path) -> None:
    def told(*words: str) -> str:
        return shell.flmarket("run", "small.toml", *words, cwd=tmp_path).stderr

    record(first, "versions", flmarket="0.0.9")
    assert told("--seeds", "1").count(SKIPPED) == 1
    beside = told("--seeds", "2")
    assert beside.count("another version of flmarket") == beside.count(SKIPPED) == 1
    assert SKIPPED not in told("--seeds", "1", "--quiet")
    assert SKIPPED not in told("--seeds", "2", "--fresh")
    assert "version" not in told("--seeds", "2")


def test_verify_names_the_version_of_a_run_with_problems(first: RunDirectory, tmp_path: Path) -> None:
    record(first, "versions", flmarket="0.0.9")
    assert OTHER_VERSION not in shell.flmarket("verify", "runs", cwd=tmp_path).stdout
    offers = first.path / "offers.csv"
    offers.write_text(offers.read_text().replace(",20,", ",21,", 1))
    reseal(first.path)
    done = shell.flmarket("verify", str(first.path))
    assert done.returncode == 1
    assert f"{first.path}: {OTHER_VERSION}" in done.stdout


def test_verify_plays_nothing_again_in_another_arithmetic(first: RunDirectory, tmp_path: Path) -> None:
    record(first, "kernel", one="reference")
    done = shell.flmarket("verify", "runs", "--rerun", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "valid: " in done.stdout
    [obstacle] = [told for told in done.stdout.splitlines() if "not played again" in told]
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
