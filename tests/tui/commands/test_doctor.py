"""`flmarket doctor`: what runs here."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


def test_a_healthy_machine_gets_a_table_and_status_0(flmarket: Flmarket) -> None:
    done = flmarket("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "flmarket works here."
    assert "problem" not in done.stdout


@pytest.mark.slow
def test_a_problem_is_named_with_its_remedy_and_gives_status_1(process: Flmarket) -> None:
    done = process("doctor", env={"FLMARKET_KERNEL": "abacus"})
    assert done.returncode == 1
    assert "-> unset FLMARKET_KERNEL" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 problem; flmarket may not work until mended."


@pytest.mark.slow
def test_a_package_that_is_in_the_way_is_reported_beside_all_the_rest(tmp_path: Path, process: Flmarket) -> None:
    (tmp_path / "des").mkdir()
    (tmp_path / "des" / "__init__.py").touch()
    done = process("doctor", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "needs its package 'des', but Python finds" in " ".join(done.stdout.split())
    assert "kernel" in done.stdout
