"""Run directories: where they go, when they count as complete, and what is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from scenarios.logs.directory import RunDirectory, RunDirectoryError
from scenarios.logs.run_state import RunState
from support.runs import RECORDED


def test_a_runs_place_names_scenario_hash_policy_and_seed(tmp_path: Path) -> None:
    place = RunDirectory.place(tmp_path, "paper", "1a2b3c4d", "hqfa", 3)
    assert place.path == tmp_path / "paper-1a2b3c4d" / "hqfa" / "seed-0003"


def test_a_run_is_complete_only_when_its_meta_file_says_so(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    assert run.state is RunState.WAITING
    run.prepare("name = 'x'\n")
    assert run.state is RunState.INCOMPLETE
    run.finish({"status": "failed"})
    assert run.state is RunState.FAILED
    run.finish({**RECORDED, "status": "complete"})
    assert run.state is RunState.COMPLETE
    content = b"name = 'x'\n"
    files = {"scenario.toml": {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
    assert run.meta() == {**RECORDED, "status": "complete", "files": files}


def test_an_unfinished_run_is_started_over_only_when_asked(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.prepare("old")
    with pytest.raises(RunDirectoryError, match="start over with the option fresh"):
        run.prepare("new")
    assert (run.path / "scenario.toml").read_text() == "old"
    run.prepare("new", fresh=True)
    assert (run.path / "scenario.toml").read_text() == "new"


def test_a_run_is_being_played_while_its_directory_is_locked(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    assert not run.being_played()  # there is none
    with run.locked():
        assert run.being_played()
    assert not run.being_played()


def test_a_directory_with_other_files_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunDirectoryError, match=r"thesis\.tex"):
        RunDirectory(tmp_path).prepare("new", fresh=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_table_may_be_open_in_an_editor(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    (tmp_path / ".DS_Store").touch()
    assert run.state is RunState.WAITING
    run.prepare("name = 'x'\n")
    (tmp_path / ".~lock.rounds.csv#").touch()
    assert run.state is RunState.INCOMPLETE
    run.finish({"status": "complete"})
    assert run.state is RunState.COMPLETE
    (tmp_path / ".git").mkdir()
    with pytest.raises(RunDirectoryError, match=r"contains '\.git', which is not a file of a run; move it away, or"):
        _ = run.state


def test_a_corrupt_meta_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"meta\.json.*remove its directory"):
        _ = RunDirectory(tmp_path).state


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="file"):
        RunDirectory(tmp_path / "file" / "run").prepare("new")


def test_starting_over_that_is_cut_short_leaves_an_unfinished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path / "run")
    names = ["events.csv", "meta.json", "offers.csv", "rounds.csv", "run.log", "scenario.toml"]
    for survivors in range(1, len(names)):
        run.prepare("x", fresh=True)
        for name in names[:-1]:
            (run.path / name).write_text("")
        run.finish({"status": "complete"})
        unlink = Path.unlink

        def fail(path: Path, *, survivors: int = survivors, unlink: Any = unlink) -> None:
            if len(list(path.parent.iterdir())) == survivors:
                raise KeyboardInterrupt
            unlink(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", fail)
            with pytest.raises(KeyboardInterrupt):
                run.prepare("x", fresh=True)
        assert len(list(run.path.iterdir())) == survivors
        assert run.state is RunState.INCOMPLETE
        run.prepare("x")  # it can resume


@pytest.mark.parametrize("name", ["../x", "/etc", "", "a/b", "x\n", "-x", "..", "x" * 201])
def test_no_name_leads_out_of_the_folder_of_runs(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="cannot be the name of a folder"):
        RunDirectory.place(tmp_path, "paper", "1a2b3c4d", name, 3)
    with pytest.raises(RunDirectoryError, match="cannot be the name of a folder"):
        RunDirectory.place(tmp_path, name, "1a2b3c4d", "hqfa", 3)
