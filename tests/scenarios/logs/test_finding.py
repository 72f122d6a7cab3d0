"""Runs are found in folders, however deep these are."""

import errno
import os
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from scenarios.loader import dumps, load, with_policy
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import complete_runs, find_runs, incomplete, run_directory, unfinished
from support.runs import RECORDED


def test_runs_are_found_at_any_depth_and_once(tmp_path: Path) -> None:
    for name in ("b/seed-0000", "a/seed-0001"):
        RunDirectory(tmp_path / name).prepare("x")
        RunDirectory(tmp_path / name).finish({})
    found = find_runs([tmp_path, tmp_path / "a"])
    assert [run.path.relative_to(tmp_path).as_posix() for run in found.ended] == ["a/seed-0001", "b/seed-0000"]
    with pytest.raises(InputError, match="nowhere"):
        find_runs([tmp_path / "nowhere"])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two complete runs."""
    scenario = dumps(with_policy(load("quickstart", ["name=small"]), "hqfa"))
    named = {**RECORDED, "scenario": "small", "hash": "0a0b0c0d", "policy": "hqfa", "status": "complete"}
    for seed, name in enumerate(("small-0a0b0c0d/hqfa/seed-0000", "small-0a0b0c0d/hqfa/seed-0001")):
        RunDirectory(tmp_path / "runs" / name).prepare(scenario)
        for file in ("rounds.csv", "offers.csv", "events.csv", "run.log"):
            (tmp_path / "runs" / name / file).touch()
        RunDirectory(tmp_path / "runs" / name).finish({**named, "seed": seed})
    return tmp_path / "runs"


def names(found: list[RunDirectory], folder: Path) -> list[str]:
    return [run.path.relative_to(folder).as_posix() for run in found]


def test_a_run_that_is_given_by_several_names_is_there_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.parent)
    (runs.parent / "link").symlink_to("runs")
    (runs.parent / "seed").symlink_to(runs / "small-0a0b0c0d/hqfa/seed-0000")
    found = find_runs(
        [Path("runs"), runs, Path("./link"), Path("seed"), Path("runs/../runs/small-0a0b0c0d/hqfa/seed-0001")]
    )
    assert names(found.ended, Path("runs")) == ["small-0a0b0c0d/hqfa/seed-0000", "small-0a0b0c0d/hqfa/seed-0001"]
    assert {run.folder for run in found.ended} == {runs / "small-0a0b0c0d"}
    assert find_runs([runs.parent / "seed"]).ended[0].folder == runs / "small-0a0b0c0d"
    monkeypatch.chdir(runs / "small-0a0b0c0d/hqfa")
    assert [run.folder for run in find_runs([Path("seed-0000")]).ended] == [runs / "small-0a0b0c0d"]


@pytest.mark.parametrize("linked", ["small-0a0b0c0d", "small-0a0b0c0d/hqfa", "small-0a0b0c0d/hqfa/seed-0001"])
def test_runs_behind_a_link_to_a_folder_are_runs(runs: Path, linked: str) -> None:
    """They are complete for ``run``, too, as when a part of them has moved to another disk."""
    (runs / linked).rename(runs.parent / "elsewhere")
    (runs / linked).symlink_to(runs.parent / "elsewhere")
    found = find_runs([runs]).ended
    assert len({run.folder for run in found}) == 1
    assert names(found, runs) == ["small-0a0b0c0d/hqfa/seed-0000", "small-0a0b0c0d/hqfa/seed-0001"]


def test_links_that_lead_up_or_around_end_nowhere(runs: Path) -> None:
    (runs / "root").symlink_to("/")
    (runs / "small-0a0b0c0d" / "again").symlink_to(runs)
    (runs / "small-0a0b0c0d" / "twin").symlink_to("hqfa")
    assert names(find_runs([runs]).ended, runs) == ["small-0a0b0c0d/hqfa/seed-0000", "small-0a0b0c0d/hqfa/seed-0001"]


def test_folders_that_may_not_be_read_and_links_that_lead_nowhere_are_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "small-2").mkdir()
    (runs / "small-0a0b0c0d/hqfa/seed-0002").symlink_to("/no/such/disk/seed-0002")
    (runs / ".#notes.txt").symlink_to("an editor's lock")
    scandir = os.scandir

    def scanned(path: str) -> object:
        if str(path).endswith("small-2"):  # the administrator may read everything
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanned)
    told: list[str] = []
    assert len(complete_runs([runs], told.append)) == 2
    assert told == [
        f"left out: {runs}/small-0a0b0c0d/hqfa/seed-0002: cannot be read: it is a link that leads nowhere",
        f"left out: {runs}/small-2: cannot be read: Permission denied",
    ]
    with pytest.raises(InputError, match="seed-0002: cannot be read: it is a link that leads nowhere"):
        complete_runs([runs])


def test_runs_without_results_are_counted_with_the_first_one_s_reason(runs: Path) -> None:
    for seed, reason in ((2, "a model diverged"), (3, "a model diverged, too")):
        RunDirectory(runs / f"small-0a0b0c0d/hqfa/seed-{seed:04d}").prepare("x")
        RunDirectory(runs / f"small-0a0b0c0d/hqfa/seed-{seed:04d}").finish({"status": "failed", "error": reason})
    RunDirectory(runs / "small-0a0b0c0d/hqfa/seed-0004").prepare("x")
    RunDirectory(runs / "small-0a0b0c0d/hqfa/seed-0005").announce()
    left = unfinished([runs])
    assert list(left.values()) == [
        "failed: a model diverged",
        "failed: a model diverged, too",
        "interrupted, or still being played",
        "not begun",
    ]
    assert incomplete(left) == [
        f"left out: 2 runs not complete, first {runs}/small-0a0b0c0d/hqfa/seed-0002: failed: a model diverged",
        f"left out: 1 run not complete, first {runs}/small-0a0b0c0d/hqfa/seed-0004: interrupted, or still being played",
        f"left out: 1 run not complete, first {runs}/small-0a0b0c0d/hqfa/seed-0005: not begun",
    ]


def test_a_file_of_a_run_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "rounds.csv").touch()
    with pytest.raises(InputError, match=r"rounds\.csv: is a file; name the directory of a run, or a folder with runs"):
        find_runs([tmp_path / "rounds.csv"])


def test_a_folder_stands_for_the_one_run_in_it(tmp_path: Path) -> None:
    def add(seed: int) -> Path:
        place = tmp_path / "small-00000000" / "as-configured" / f"seed-{seed:04d}"
        place.mkdir(parents=True)
        (place / "scenario.toml").touch()
        return place

    place = add(1)
    assert run_directory(tmp_path) == place
    add(2)
    with pytest.raises(InputError, match="contains 2 runs; choose one:") as caught:
        run_directory(tmp_path)
    assert len(str(caught.value).splitlines()) == 1 + 2
    for seed in range(3, 13):
        add(seed)
    with pytest.raises(InputError, match=r"contains 12 runs; choose one:(\n  .*){10}\n  \(2 more\)$"):
        run_directory(tmp_path)
    with pytest.raises(InputError, match="no such directory"):
        run_directory(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"not a run directory; a run directory has a scenario\.toml and the tables"):
        run_directory(tmp_path / "empty")
