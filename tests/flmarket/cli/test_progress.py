"""Whatever takes long says how far it is, and --quiet takes that away."""

from pathlib import Path

import pytest

from flmarket.core import tracking
from support.shell import flmarket

LEAGUE = ("league", "quickstart", "--policy", "hqfa", "--policy", "lcfa", "--seed", "7", "--rounds", "2")
SURROGATE = ("--set", "training.backend=surrogate")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every count is told, as if each took long."""
    monkeypatch.setattr(tracking, "INTERVAL", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("report", "runs"), ["runs read: 3 of 4"]),
        (("report", "runs", "--bounds"), ["runs bounded: 3 of 4", "rounds: 3 of 4"]),
        (("report", "runs", "--format", "html"), ["figures: 4 of 5"]),
        (("report", "runs", "--figures", "{0}/figures"), ["figures: 4 of 5"]),
        (("verify", "runs/{run}", "--rerun"), ["small (lcfa) seed 0 again: 4 of 4"]),
        (("export", "runs", "--csv", "{0}/all.csv"), ["runs: 3 of 4"]),
        (("certify", "vcg", "--markets", "2", "--tries", "5", "--out", "{0}"), ["markets attacked: 1 of 2"]),
        ((*LEAGUE, *SURROGATE, "--out", "{0}/league"), ["games: 8 of 8"]),
        (("suite", "lcfa", "--markets", "alone", "--seed", "7101", "--out", "{0}"), ["lcfa, runs: 1 of 1"]),
        (
            ("train", "--draw", "2", "--episodes", "2", "--backend", "noiseless", "--out", "{0}/agent"),
            ["markets played by hqfa: 1 of 2", "seed 0, episodes: 1 of 2, reward"],
        ),
    ],
    ids=lambda it: " ".join(it)[:40],
)
def test_what_takes_long_says_how_far_it_is(
    words: tuple[str, ...], told: list[str], batch: Path, tmp_path: Path
) -> None:
    run = next((batch / "runs").glob("*/lcfa/seed-0000")).relative_to(batch / "runs")
    filled = [word.format(tmp_path, run=run) for word in words]
    done = flmarket(*filled, cwd=batch)
    assert done.returncode == 0, done.stderr
    for text in told:
        assert any(line.startswith(text) for line in done.stderr.splitlines()), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (*LEAGUE, *SURROGATE),
        ("suite", "lcfa", "--markets", "alone", "--seed", "7101"),
        ("certify", "vcg", "--markets", "2", "--tries", "5"),
        ("train", "quickstart", "--episodes", "2", "--backend", "noiseless"),
        ("run", "quickstart", *SURROGATE, "--rounds", "2"),
    ],
    ids=lambda it: it[0],
)
def test_quiet_means_quiet(words: tuple[str, ...], tmp_path: Path) -> None:
    done = flmarket(*words, "--out", str(tmp_path / "out"), "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
