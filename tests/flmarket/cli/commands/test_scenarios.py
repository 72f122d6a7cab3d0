"""`flmarket scenarios`: the built-in scenarios, and the file of each."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.loader import builtin_names

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


def test_all_are_listed(command: Flmarket) -> None:
    listed = command("scenarios").stdout
    assert all(name in listed for name in builtin_names())


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_scenario_can_be_shown_copied_and_validated(name: str, tmp_path: Path, flmarket: Flmarket) -> None:
    (tmp_path / "copy.toml").write_text(flmarket("scenarios", "show", name).stdout)
    done = flmarket("validate", str(tmp_path / "copy.toml"))
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_bad_input(flmarket: Flmarket) -> None:
    done = flmarket("scenarios", "show", "papre")
    assert done.returncode == 2
    assert "paper" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
