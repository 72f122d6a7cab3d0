"""`flmarket policies`, `flmarket datasets`, `flmarket scenarios`: what there is, by name."""

from collections.abc import Collection
from pathlib import Path

import pytest

from fl.data.registry import data_root
from flmarket.cli.commands.datasets import datasets
from scenarios.loader import builtin_names
from support.shell import Command, flmarket


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("policies", ["random", "lcfa", "hqfa", "greedy", "d-first"]),
        ("datasets", ["mnist", "fashion-mnist", "emnist-digits", "digits", f"{data_root()} (set FLMARKET_DATA to cha"]),
        ("scenarios", builtin_names()),
    ],
)
def test_all_are_listed(what: str, names: Collection[str], command: Command) -> None:
    listed = command(what).stdout
    assert [name for name in names if name not in listed] == []


def test_a_narrow_list_cuts_no_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("flmarket.core.rich_console.PIPED_WIDTH", 60)
    datasets()
    assert "…" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_scenario_can_be_shown_copied_and_validated(name: str, tmp_path: Path) -> None:
    (tmp_path / "copy.toml").write_text(flmarket("scenarios", "show", name).stdout)
    done = flmarket("validate", str(tmp_path / "copy.toml"))
    assert done.returncode == 0, done.stderr
