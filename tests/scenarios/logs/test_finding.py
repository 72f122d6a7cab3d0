"""Runs are found in folders, however deep these are."""

from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import find_runs, require_directory


def test_runs_are_found_at_any_depth_and_once(tmp_path: Path) -> None:
    for name in ("b/seed-0000", "a/seed-0001"):
        RunDirectory(tmp_path / name).prepare("x")
        RunDirectory(tmp_path / name).finish({})
    found = find_runs([tmp_path, tmp_path / "a"])
    assert [run.path.relative_to(tmp_path).as_posix() for run in found] == ["a/seed-0001", "b/seed-0000"]
    with pytest.raises(InputError, match="nowhere"):
        find_runs([tmp_path / "nowhere"])


def test_a_file_of_a_run_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "rounds.csv").touch()
    with pytest.raises(InputError, match=r"rounds\.csv: is a file; name the directory of a run, or a folder with runs"):
        find_runs([tmp_path / "rounds.csv"])


def test_a_path_that_was_copied_from_a_page_with_its_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where names hold what the shell would expand."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs[1]/quickstart-74adb5c2/hqfa/seed-0000").mkdir(parents=True)
    with pytest.raises(
        InputError, match=r"no such directory; did you mean runs\[1\]/quickstart-74adb5c2/hqfa/seed-0000"
    ):
        require_directory(Path("runs[1]/quickstart-.../hqfa/seed-0000"))
    with pytest.raises(InputError, match=r"no such directory$"):
        require_directory(Path("runs[1]/paper-.../hqfa/seed-0000"))


@pytest.mark.parametrize("name", ["runs/quickstart-......", "......", "runs/.../rounds.csv"])
def test_other_dots_and_files_are_answered_with_no_nonsense(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/rounds.csv").touch()
    (tmp_path / "aside.txt").touch()
    with pytest.raises(InputError, match=r"no such directory(; did you mean runs\?)?$"):
        require_directory(Path(name))
