"""`flmarket run`: results on standard output, progress on standard error, and what happens the second time."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Done = subprocess.CompletedProcess[str]
Flmarket = Callable[..., Done]

# Without these two a process may not write where the file modes forbid it, not even as root.
UNPRIVILEGED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-P", "-m", "tui.cli", *sys.argv[1:]])
"""


def test_a_run_ends_with_a_table_and_the_path_of_its_csv(quick_run: tuple[Path, Done]) -> None:
    out, done = quick_run
    assert done.returncode == 0
    *_, path = done.stdout.splitlines()
    rounds = pd.read_csv(path)
    assert Path(path).is_relative_to(out)
    for service, last in rounds.groupby("service")["test_accuracy"].last().items():
        assert str(service) in done.stdout
        assert f"{100 * last:.2f} %" in done.stdout
    assert "final accuracy" in done.stdout
    assert "round" not in done.stdout.split("Results")[0]  # progress goes to stderr
    assert "complete in" in done.stderr


def test_a_second_call_skips_the_complete_run(quick_run: tuple[Path, Done], flmarket: Flmarket) -> None:
    out, first = quick_run
    second = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))
    assert second.returncode == 0
    assert "already complete, skipped (--fresh runs it again)" in second.stderr
    assert second.stdout == first.stdout


def test_quiet_leaves_only_results(quick_run: tuple[Path, Done], flmarket: Flmarket) -> None:
    out, first = quick_run
    quiet = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out), "--quiet")
    assert (quiet.stdout, quiet.stderr) == (first.stdout, "")


def test_meta_data_say_what_ran(quick_run: tuple[Path, Done]) -> None:
    out, _ = quick_run
    meta = json.loads(next(out.rglob("meta.json")).read_text())
    assert (meta["status"], meta["seed"], meta["policy"], meta["rounds"]) == ("complete", 0, "as-configured", 3)
    assert set(meta["kernel"]) == set(pd.read_csv(next(out.rglob("rounds.csv")))["service"])
    assert all(digest for files in meta["data"].values() for digest in files["sha256"].values())


def test_a_dry_run_lists_what_would_run_and_what_is_complete(batch: Path, flmarket: Flmarket) -> None:
    done = flmarket("run", "shell.toml", "--policy", "random", "--seeds", "3", "--dry-run", cwd=batch)
    assert done.returncode == 0
    *lines, training, last = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["complete", "complete", "run"]
    assert training.startswith("training  digits: cnn, local_epochs ")
    assert last == "1 to run, 2 complete"
    assert len(list(batch.glob("runs/*/random/*"))) == 2


def test_a_directory_that_cannot_be_written_is_named_and_left_alone(batch: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("read-only for root needs Linux capabilities")
    [run] = batch.glob("runs/*/random/seed-0000")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    run.chmod(0o555)
    try:
        command = [sys.executable, "-c", UNPRIVILEGED, "run", "shell.toml", "--policy", "random", "--fresh"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=batch)
    finally:
        run.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert f"{run.relative_to(batch)}" in done.stderr
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papre"], "paper"),
        (["quickstart", "--policy", "hqfaa"], "did you mean 'hqfa'?"),
        (["quickstart", "--seeds", "3..1"], "runs backwards"),
        (["quickstart", "--rounds", "0"], "--rounds 0: must be at least 1, not 0\n"),
        (["quickstart", "--set", "clients.cores"], "clients.cores"),
        (["quickstart", "--out", "/dev/null/runs"], "be written: Not a directory"),
        ([], "Missing argument"),
        (["quickstart", "--workers", "-1"], "workers"),
        (["quickstart", "--ray-address", "x"], "--ray-address is for --engine ray"),
        (["quickstart", "--jobs", "0"], "jobs"),
        (
            ["quickstart", "--fresh", "--fresh-changed"],
            "choose one of --fresh, which starts all runs over, and --fresh-ch",
        ),
    ],
)
def test_a_mistake_is_named_with_status_2_and_no_traceback(
    arguments: list[str], message: str, tmp_path: Path, flmarket: Flmarket
) -> None:
    done = flmarket("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
