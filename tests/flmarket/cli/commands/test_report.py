"""`flmarket report`: tables on standard output, figures in files."""

import csv
import io
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from flmarket import read as flmarket_read
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read
from flmarket.cli.commands.report import _draw
from flmarket.core.errors import InputError
from scenarios.loader import parse
from support.runs import played
from support.shell import Command, flmarket


@pytest.mark.slow
def test_a_report_goes_to_stdout_and_its_figures_to_files(batch: Path, tmp_path: Path, command: Command) -> None:
    figures = tmp_path / "figures"
    done = flmarket("report", "runs", "--baseline", "random", "--figures", str(figures), cwd=batch)
    assert done.returncode == 0, done.stderr
    assert "**Whole market, against random**" in done.stdout
    assert len(list(figures.glob("*.svg"))) == len(list(figures.glob("*.pdf"))) == 5
    (line,) = done.stderr.splitlines()
    written, _, names = line.rpartition(": ")
    assert written == f"{figures}: {len(list(figures.iterdir()))} files written"
    assert sorted(names.split(", ")) == sorted(path.stem for path in figures.glob("*.svg"))
    page = command("report", "runs", "--format", "html", cwd=batch).stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 5


def test_the_page_has_the_commands_that_show_what_decided_a_run(two_services: str, tmp_path: Path) -> None:
    played(parse(two_services), tmp_path / "runs")
    page = flmarket("report", "runs", "--format", "html", cwd=tmp_path).stdout
    what, command = re.findall(r"<li>(Round 1: beta [^<]+)<br><code>flmarket ([^<]+)</code>", page)[0]
    assert what == "Round 1: beta reaches its target and leaves"
    assert command.endswith("/as-configured/seed-0000 --round 1")
    assert "needs a terminal" in flmarket(*command.split(), cwd=tmp_path).stderr  # that is all it lacks here


@pytest.mark.slow
def test_forks_are_shown_when_they_are_asked_for(batch: Path, tmp_path: Path) -> None:
    shutil.copytree(batch / "runs", tmp_path / "runs")
    run = min(tmp_path.glob("runs/*/random/seed-*"))
    assert flmarket("fork", str(run), "--round", "2", "--set", "clients.cores=4", "--quiet").returncode == 0
    done = flmarket("report", "runs", cwd=tmp_path)
    assert done.stderr == "left out: 1 fork of these runs; --forks shows forks, too\n"
    assert "clients.cores = 4 from round 2" not in done.stdout
    assert "clients.cores = 4 from round 2" in flmarket("report", "runs", "--forks", cwd=tmp_path).stdout


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


def test_nothing_is_printed_beside_the_refusal_of_an_unknown_table(batch: Path) -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(InputError, match="beta: no table is called so"):
        _draw(replace(make_report(read([batch / "runs"])), shown=("beta",)), console)
    assert isinstance(console.file, io.StringIO)
    assert not console.file.getvalue()


@pytest.mark.parametrize(
    ("options", "ratio"), [(["--bounds"], "DQI bound ratio"), (["--together", "union"], "union DQI bound ratio")]
)
def test_bounds_are_measures_of_the_table(batch: Path, options: list[str], ratio: str) -> None:
    done = flmarket("report", "runs", *options, "--format", "csv", cwd=batch)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    found = [float(row["mean"]) for row in rows if row["measure"] == ratio]
    assert len(found) == 2
    assert min(found) >= 1


def test_without_runs_it_says_in_a_line_which_are_there(batch: Path, tmp_path: Path) -> None:
    for folder, there in (
        (batch, "'flmarket report runs' takes the 4 runs in runs"),
        (tmp_path, "there are none in runs"),
    ):
        done = flmarket("report", cwd=folder)
        assert (done.returncode, done.stderr) == (2, f"name runs, or a folder with runs in it; {there}\n")


@pytest.mark.parametrize(
    ("option", "path", "problem"),
    [
        ("--bounds-csv", "nowhere/regret.csv", "nowhere/regret.csv: cannot be written: No such file or directory"),
        ("--figures", "shell.toml/figures", "shell.toml/figures: cannot be made: Not a directory"),
    ],
)
def test_what_cannot_be_written_is_refused_before_runs_are_read(
    option: str, path: str, problem: str, batch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flmarket.analysis.results import run_results as results

    monkeypatch.setattr(results, "read", lambda *_: pytest.fail("runs were read"))
    done = flmarket("report", "runs", option, path, cwd=batch)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{problem}\n"


def test_regret_is_written_by_round(batch: Path) -> None:
    """The file implies the bounds, and the table's regret is the mean of the file's."""
    done = flmarket("report", "runs", "--bounds-csv", "regret.csv", "--format", "csv", cwd=batch)
    assert done.returncode == 0, done.stderr
    assert "regret.csv: what services got and could have had, by round" in done.stderr
    with (batch / "regret.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    [shown] = [
        float(row["mean"])
        for row in table
        if row["measure"] == "regret" and row["policy"] == "lcfa" and row["service"] == rows[0]["service"]
    ]
    own = [row for row in rows if row["policy"] == "lcfa" and row["service"] == rows[0]["service"]]
    by_seed: dict[str, list[float]] = {}
    for row in own:
        by_seed.setdefault(row["seed"], []).append(float(row["regret"]))
    means = [sum(values) / len(values) for values in by_seed.values()]
    assert shown == pytest.approx(sum(means) / len(means), rel=1e-4)


def test_a_library_s_own_lines_do_not_get_among_the_results() -> None:
    """The solver of the bounds prints by itself, past Python."""
    program = """
import ctypes
from flmarket.cli.console import silenced
print("before")
with silenced():
    ctypes.CDLL(None).puts(b"noise")
print("after", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("before\nafter\n", "")


@pytest.mark.parametrize("file", ["rounds.csv", "meta.json"])
def test_a_damaged_run_is_left_out_and_named_and_the_others_are_reported(
    file: str, batch: Path, tmp_path: Path
) -> None:
    shutil.copytree(batch / "runs", tmp_path / "runs")
    whole = len(list(tmp_path.rglob("rounds.csv")))
    path = sorted(tmp_path.rglob(file))[0]
    path.write_bytes(path.read_bytes()[:60])
    done = flmarket("report", "runs", cwd=tmp_path)
    assert done.returncode == 1
    told = f"left out: {path.relative_to(tmp_path)}: is damaged: "
    assert done.stderr.startswith(told)
    assert done.stderr.endswith("remove its directory and give its `flmarket run` command once more\n")
    assert told in done.stdout  # a page that is kept says it, too
    assert f"\n{whole - 1} run" in done.stdout
    exported = flmarket("export", "runs", "--csv", "all.csv", cwd=tmp_path)
    assert exported.returncode == 1
    assert exported.stdout.startswith(f"all.csv: rounds of {whole - 1} run")
    assert exported.stderr == done.stderr


def test_where_all_runs_are_damaged_there_is_no_report(batch: Path, tmp_path: Path) -> None:
    shutil.copytree(batch / "runs", tmp_path / "runs")
    for path in tmp_path.rglob("rounds.csv"):
        path.write_bytes(path.read_bytes()[:60])
    done = flmarket("report", "runs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rounds.csv: is damaged: it has 60 bytes" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("style", ["md", "html", "tex", "csv"])
def test_runs_that_are_not_complete_are_counted_wherever_the_others_are(
    style: str, batch: Path, tmp_path: Path
) -> None:
    """A mean over those that survived would pass for one over all."""
    shutil.copytree(batch / "runs", tmp_path / "runs")
    [first, *_] = sorted(tmp_path.rglob("meta.json"))
    first.unlink()
    done = flmarket("report", "runs", "--format", style, cwd=tmp_path)
    assert done.returncode == 0
    told = f"left out: 1 run not complete, first {first.parent.relative_to(tmp_path)}: interrupted"
    assert told in done.stderr
    if style == "csv":
        rows = csv.DictReader(io.StringIO(done.stdout))
        assert {(row["policy"], row["left_out"]) for row in rows} == {("lcfa", "1"), ("random", "0")}
    else:
        assert told in done.stdout.replace(r"\_", "_")
        assert re.search(r"\b1 of 2\b", done.stdout)


def test_python_warns_of_runs_that_are_not_complete_and_says_why(batch: Path, tmp_path: Path) -> None:
    shutil.copytree(batch / "runs", tmp_path / "runs")
    [first, *_] = sorted(tmp_path.rglob("meta.json"))
    first.unlink()
    with pytest.warns(UserWarning, match="left out: 1 run not complete, first .*: interrupted"):
        found = flmarket_read(tmp_path / "runs")
    assert found.failed == {first.parent: "interrupted, or still being played"}
    assert "; 1 not complete>" in repr(found)


@pytest.mark.parametrize(("style", "count"), [("md", 1), ("tex", 2)])  # in LaTeX, more measures are one of their own
def test_tables_are_chosen_by_their_titles(style: str, count: int, batch: Path) -> None:
    done = flmarket("report", "runs", "--format", style, "--table", "service alpha", cwd=batch)
    assert done.stdout.count("**Service alpha**" if style == "md" else r"\begin{table}") == count
    assert "Whole market" not in done.stdout
    assert "small" in done.stdout  # what it is of
    unknown = flmarket("report", "runs", "--table", "beta", cwd=batch)
    assert unknown.returncode == 2
    assert "beta: no table is called so; choose from Whole market; Service alpha" in unknown.stderr


@pytest.mark.parametrize("choice", [("--format", "csv", "--table", "alpha"), ("--figure", "cost")])
def test_a_choice_among_what_is_not_made_is_refused(choice: tuple[str, ...], batch: Path) -> None:
    done = flmarket("report", "runs", *choice, cwd=batch)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{choice[-2]}: ")


def test_figures_are_chosen_by_their_names(batch: Path, tmp_path: Path) -> None:
    done = flmarket("report", "runs", "--figures", str(tmp_path), "--figure", "cost", cwd=batch)
    assert done.returncode == 0, done.stderr
    assert [path.stem.rpartition("-")[2] for path in tmp_path.iterdir()] == ["cost"] * 3
    unknown = flmarket("report", "runs", "--figures", str(tmp_path), "--figure", "pie", cwd=batch)
    assert (unknown.returncode, "pie: no figure is called so; choose from small-" in unknown.stderr) == (
        2,
        True,
    )
