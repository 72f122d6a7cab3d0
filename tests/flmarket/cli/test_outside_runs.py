"""Results that a command is asked to write never go where a run keeps its own."""

import shutil
from pathlib import Path

import pytest

from support.shell import Done, flmarket

TRAIN = ["train", "paper", "--backend", "surrogate", "--set", "rounds=2", "--episodes", "1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["export", "{run}", "--csv", "{link}/mine.csv"],
        ["export", "{run}", "--parquet", "{run}/offers.csv"],
        ["report", "{run}", "--bounds-csv", "{run}/meta.json"],
        ["report", "{run}", "--figures", "{run}/figures"],
        ["explain", "{run}", "--round", "2", "--service", "digits", "--csv", "{run}/events.csv"],
        ["fork", "{run}", "--round", "2", "--set", "clients.cores=1", "--csv", "{run}/mine.csv"],
        [*TRAIN, "--out", "{link}/agents/mine.safetensors", "--seeds", "2"],
        [*TRAIN, "--out", "agent", "--tensorboard", "{run}"],
        ["suite", "lcfa", "--out", "{run}/meta.json", "--fresh"],
        ["league", "quickstart", "--policy", "hqfa", "--policy", "lcfa", "--seeds", "1", "--out", "{link}"],
        ["certify", "vcg", "--markets", "1", "--out", "{run}"],
        ["calibrate", "dqi", "quickstart", "--out", "{run}"],
    ],
)
def test_nothing_is_written_into_the_directory_of_a_run(
    command: list[str], quick_run: tuple[Path, Done], tmp_path: Path
) -> None:
    shutil.copytree(quick_run[0], tmp_path / "runs")
    (run,) = (path.parent for path in (tmp_path / "runs").rglob("meta.json"))
    (tmp_path / "link").symlink_to(run)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = flmarket(*(it.format(run=run, link=tmp_path / "link") for it in command), cwd=tmp_path)
    assert done.returncode == 2
    assert f"{run} is the directory of a run, in which nothing else is kept; choose another" in done.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
