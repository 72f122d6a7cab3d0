"""`flmarket datasets`."""

import subprocess
from collections.abc import Callable

from fl.data.registry import data_root


def test_all_are_listed_with_the_folder_of_their_files(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    listed = command("datasets").stdout
    assert all(name in listed for name in ("mnist", "fashion-mnist", "emnist-digits", "digits"))
    assert f"Downloaded files are kept in {data_root()} (set FLMARKET_DATA to change it)." in listed
