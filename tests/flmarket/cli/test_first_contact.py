"""`flmarket` alone: what it is, and what to type next."""

import re

import pytest

from support.shell import flmarket


def test_alone_it_says_what_it_is_in_ten_lines() -> None:
    done = flmarket()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 10
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_it_says_to_type_are_commands() -> None:
    tried = re.findall(r"flmarket (\w+) ?(quickstart)?   ", flmarket().stdout)
    assert [command for command, _ in tried] == ["run", "demo", "tui"]
    for command, _ in tried:
        assert flmarket(command, "--help").returncode == 0


def test_how_it_was_called_is_how_it_says_to_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the shell does not find it, as after `make run`, its path is given, as a shell takes it."""
    monkeypatch.setattr("flmarket.cli.console.sys.argv", ["my tools/flmarket"])
    monkeypatch.setenv("PATH", "")
    from flmarket.cli.console import program

    assert program() == "'my tools/flmarket'"
