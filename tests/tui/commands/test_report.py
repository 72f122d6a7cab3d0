"""`flmarket report`: tables on standard output, figures in files."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


def test_a_report_goes_to_stdout_and_its_figures_to_files(
    batch: Path, tmp_path: Path, flmarket: Flmarket, process: Flmarket
) -> None:
    figures = tmp_path / "figures"
    done = flmarket("report", "runs", "--baseline", "random", "--figures", str(figures), cwd=batch)
    assert done.returncode == 0, done.stderr
    assert "**Whole market, against random**" in done.stdout
    assert len(list(figures.glob("*.svg"))) == len(list(figures.glob("*.pdf"))) == 5
    page = process("report", "runs", "--format", "html", cwd=batch).stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nowhere"], "nowhere"), (["runs", "--baseline", "hqfa"], "no run has that policy; choose from lcfa, random")],
)
def test_a_mistake_is_named(arguments: list[str], message: str, batch: Path, flmarket: Flmarket) -> None:
    done = flmarket("report", *arguments, cwd=batch)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
