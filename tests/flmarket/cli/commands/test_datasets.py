"""`flmarket datasets`."""

import pytest

from fl.data.registry import data_root
from flmarket.cli.commands.datasets import datasets
from support.shell import Command


def test_all_are_listed_with_the_folder_of_their_files(command: Command) -> None:
    listed = command("datasets").stdout
    assert all(name in listed for name in ("mnist", "fashion-mnist", "emnist-digits", "digits"))
    assert f"Downloaded files are kept in {data_root()} (set FLMARKET_DATA to change it)." in listed


def test_a_narrow_list_cuts_no_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("flmarket.cli.console.PIPED_WIDTH", 60)
    datasets()
    assert "…" not in capsys.readouterr().out
