"""Batches, verify and report from a user's shell."""

import subprocess
import sys
from pathlib import Path

import pytest

# Without these two a process may not write where the file modes forbid it, not even as root.
UNPRIVILEGED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-P", "-m", "tui.cli", *sys.argv[1:]])
"""


def flmarket(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "tui.cli", *arguments], capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def folder(one_service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "shell.toml").write_text(one_service)
    done = flmarket(
        "run", "shell.toml", "--policy", "random", "--policy", "lcfa", "--seeds", "2", "--jobs", "2", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("complete in") == 4
    return folder


def test_a_dry_run_lists_what_would_run_and_what_is_complete(folder: Path) -> None:
    done = flmarket("run", "shell.toml", "--policy", "random", "--seeds", "3", "--dry-run", cwd=folder)
    assert done.returncode == 0
    *lines, last = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["complete", "complete", "run"]
    assert last == "1 to run, 2 complete"
    assert len(list(folder.glob("runs/*/random/*"))) == 2


def test_verify_says_good_and_ends_with_1_otherwise(folder: Path, tmp_path: Path) -> None:
    done = flmarket("verify", "runs", "--rerun", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("same bytes again") == 4
    [table, *_] = (folder / "runs").rglob("rounds.csv")
    copy = tmp_path / "runs" / "x"
    copy.mkdir(parents=True)
    for path in table.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes().replace(b",6.500000,", b",2.000000,"))
    done = flmarket("verify", "runs", cwd=tmp_path)
    assert done.returncode == 1
    assert "the budget 2.000000 is not the scenario's 6.5" in done.stdout


def test_a_report_goes_to_stdout_and_its_figures_to_files(folder: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    done = flmarket("report", "runs", "--baseline", "random", "--figures", str(figures), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "**Whole market, against random**" in done.stdout
    assert len(list(figures.glob("*.svg"))) == len(list(figures.glob("*.pdf"))) == 5
    page = flmarket("report", "runs", "--format", "html", cwd=folder).stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 5


def test_a_directory_that_cannot_be_written_is_named_and_left_alone(folder: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("read-only for root needs Linux capabilities")
    [run] = folder.glob("runs/*/random/seed-0000")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    run.chmod(0o555)
    try:
        command = [sys.executable, "-c", UNPRIVILEGED, "run", "shell.toml", "--policy", "random", "--fresh"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    finally:
        run.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert f"{run.relative_to(folder)}" in done.stderr
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_mistakes_are_named(folder: Path) -> None:
    for arguments, message in (
        (["report", "nowhere"], "nowhere"),
        (["report", "runs", "--baseline", "hqfa"], "there are lcfa, random"),
        (["verify", "nowhere"], "nowhere"),
        (["run", "shell.toml", "--ray-address", "x"], "--ray-address is for --engine ray"),
        (["run", "shell.toml", "--jobs", "0"], "jobs"),
    ):
        done = flmarket(*arguments, cwd=folder)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
