"""The flmarket that runs: nothing shadows a part of it unnoticed, and child processes run the code of their parent."""

import subprocess
import sys
from pathlib import Path

import pytest

from flmarket.core.installation import PACKAGES, ROOT, command, require_one_place

CHECK = (
    f"import sys; sys.path.insert(1, {str(ROOT)!r}); from flmarket.core.installation import require_one_place as r; r()"
)


def python(code: str, folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_all_packages_lie_in_one_place() -> None:
    require_one_place()
    assert all((ROOT / name / "__init__.py").is_file() for name in PACKAGES)


@pytest.mark.parametrize("what", ["learning/__init__.py", "des.py"])
def test_a_package_of_the_users_own_that_is_in_the_way_is_named(what: str, tmp_path: Path) -> None:
    """A folder `learning` or a file `des.py` beside one's script is nothing unusual."""
    own = tmp_path / what
    own.parent.mkdir(exist_ok=True)
    own.touch()
    done = python(CHECK, tmp_path)
    assert "WrongCodeError" in done.stderr
    assert f"needs its package {what.partition('/')[0].removesuffix('.py')!r}, but Python finds {own}" in done.stderr


def test_a_folder_that_is_no_package_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "learning").mkdir()
    assert python(CHECK, tmp_path).stderr == ""


def test_a_child_runs_its_parents_code_even_where_another_flmarket_is_installed(tmp_path: Path) -> None:
    """All that the child imports lies where the parent's code lies, whatever stands first on its path."""
    for name in ("fl", "des"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('another flmarket')")
    child = [*command("flmarket.core.installation"), "argument"]
    done = subprocess.run(child, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_keeps_its_arguments_and_its_name(tmp_path: Path) -> None:
    """The module runs as __main__, as with ``python -m``."""
    code = "import sys\nif __name__ == '__main__':\n    print(sys.argv[1:])\n"
    (tmp_path / "shows.py").write_text(code)
    child = command("shows", "--one", "two")
    done = subprocess.run(child, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.stdout == "['--one', 'two']\n", done.stderr


@pytest.mark.parametrize("own", ["fl", "learning"])
def test_the_command_says_what_is_in_its_way(own: str, tmp_path: Path) -> None:
    """One line and exit status 2, no traceback."""
    (tmp_path / own).mkdir()
    (tmp_path / own / "__init__.py").touch()
    code = f"import sys; sys.path.insert(1, {str(ROOT)!r}); from flmarket.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "policies"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("flmarket ")
    assert repr(own) in line
    assert str(tmp_path / own / "__init__.py") in line


def test_so_does_the_first_use_in_a_script(tmp_path: Path) -> None:
    (tmp_path / "tui.py").touch()
    done = python(f"import sys; sys.path.insert(1, {str(ROOT)!r}); import flmarket; flmarket.run", tmp_path)
    assert f"needs its package 'tui', but Python finds {tmp_path / 'tui.py'}" in done.stderr
