"""`flmarket scenarios`: the built-in scenarios, and the file of each."""

from pathlib import Path

import pytest

from scenarios.loader import builtin_names
from support.shell import Command, flmarket


def test_all_are_listed(command: Command) -> None:
    listed = command("scenarios").stdout
    assert all(name in listed for name in builtin_names())


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_scenario_can_be_shown_copied_and_validated(name: str, tmp_path: Path) -> None:
    (tmp_path / "copy.toml").write_text(flmarket("scenarios", "show", name).stdout)
    done = flmarket("validate", str(tmp_path / "copy.toml"))
    assert done.returncode == 0, done.stderr
