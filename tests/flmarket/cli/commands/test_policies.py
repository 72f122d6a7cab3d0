"""`flmarket policies`."""

from support.shell import Command


def test_all_are_listed(command: Command) -> None:
    listed = command("policies").stdout
    assert all(name in listed for name in ("random", "lcfa", "hqfa", "greedy", "d-first"))
