"""`flmarket report`: tables on standard output, figures in files."""

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from scenarios.judging.report import make_report
from scenarios.judging.results import read
from support.runs import reseal
from tui.commands.report import _draw

Flmarket = Callable[..., subprocess.CompletedProcess[str]]


def test_a_report_goes_to_stdout_and_its_figures_to_files(
    batch: Path, tmp_path: Path, flmarket: Flmarket, process: Flmarket
) -> None:
    figures = tmp_path / "figures"
    done = flmarket("report", "runs", "--baseline", "random", "--figures", str(figures), cwd=batch)
    assert done.returncode == 0, done.stderr
    assert "**Whole market, against random**" in done.stdout
    assert len(list(figures.glob("*.svg"))) == len(list(figures.glob("*.pdf"))) == 5
    (line,) = done.stderr.splitlines()
    written, _, names = line.rpartition(": ")
    assert written == f"{figures}: {len(list(figures.iterdir()))} files written"
    assert sorted(names.split(", ")) == sorted(path.stem for path in figures.glob("*.svg"))
    page = process("report", "runs", "--format", "html", cwd=batch).stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 5


def test_in_a_terminal_policies_are_columns(batch: Path) -> None:
    """Twelve measures side by side are wider than a screen; policies are few."""
    console = Console(file=io.StringIO(), width=80)
    _draw(make_report(read([batch / "runs"])), console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line.split() for line in lines if "lcfa" in line and line[:1] != "-"]
    assert headings == [["lcfa", "random"]] * 2
    assert [line.split()[1] for line in lines if line[:1] == "-"] == ["lcfa", "random"]  # a sentence on each
    assert sum(line.startswith("  final accuracy ") for line in lines) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nowhere"], "nowhere"), (["runs", "--baseline", "hqfa"], "no run has that policy; choose from lcfa, random")],
)
def test_a_mistake_is_named(arguments: list[str], message: str, batch: Path, flmarket: Flmarket) -> None:
    done = flmarket("report", *arguments, cwd=batch)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("rounds.csv", ",training,", ",training,nan,", "rounds.csv"),
        ("scenario.toml", "reward_base = 60.0", "reward_base = 1e300", "reward_base is out of its range"),
        ("scenario.toml", "target_accuracy = 0.99", "target_accuracy = nan", "target_accuracy is out of its range"),
        ("scenario.toml", 'name = "alpha"', 'name = "../alpha"', "'../alpha': a name consists of"),
        ("scenario.toml", "[clients]", "clients = 1\n[x]", "is not the scenario of a run"),
        (
            "meta.json",
            '"policy": "lcfa"',
            '"policy": "../../lcfa"',
            "policy: '../../lcfa' cannot be the name",
        ),
    ],
)
def test_damaged_logs_are_input_errors(
    file: str, old: str, new: str, message: str, batch: Path, tmp_path: Path, flmarket: Flmarket
) -> None:
    shutil.copytree(batch / "runs", tmp_path / "runs")
    for meta in tmp_path.rglob("meta.json"):
        path = meta.with_name(file)
        path.write_text(path.read_text().replace(old, new))
        reseal(meta.parent)
    done = flmarket("report", "runs", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "defect" not in done.stderr
