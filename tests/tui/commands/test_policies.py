"""`flmarket policies`."""

import subprocess
from collections.abc import Callable

import pytest


def test_all_are_listed(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    listed = command("policies").stdout
    assert all(name in listed for name in ("random", "lcfa", "hqfa", "greedy", "d-first"))


@pytest.mark.slow
def test_a_package_that_ends_its_process_is_listed_with_the_reason(
    install_package: Callable[..., None], process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    install_package("acme", "import os\nos._exit(0)\n", "flmarket.policies", red="acme:Red")
    done = process("policies")
    assert done.returncode == 0
    assert "its process ended with status 0 (importing policy 'red')" in " ".join(done.stdout.split())
    assert "lcfa" in done.stdout
    run = process("run", "quickstart", "--policy", "red")
    assert run.returncode == 2
    assert run.stderr == "a plug-in cannot be loaded: its process ended with status 0 (importing policy 'red')\n"
