"""`flmarket run`: results on standard output, progress on standard error, and what happens the second time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from scenarios.logs.directory import RunDirectory
from support.shell import CLI, Done, flmarket
from support.terminal import Terminal

SURROGATE = ("--set", "training.backend=surrogate")

# Without these two a process may not write where the file modes forbid it, not even as root.
UNPRIVILEGED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-P", "-m", "flmarket.cli.main", *sys.argv[1:]])
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
    assert "accuracy" in done.stdout
    assert "round" not in done.stdout.split("Results")[0]  # progress goes to stderr
    assert "complete in" in done.stderr


def test_what_will_be_played_is_said_first(quick_run: tuple[Path, Done], tmp_path: Path) -> None:
    """The time it takes only where complete runs tell: of the same scenario and policy, with any seed."""
    _, first = quick_run
    assert first.stderr.startswith("1 run: seed 0, 3 rounds\n")
    brief = ("run", "quickstart", "--rounds", "3", "--set", "training.backend=surrogate")
    several = flmarket(*brief, "--seeds", "0..2,7", "--out", str(tmp_path))
    assert "\n4 runs: seeds 0-2, 7, 3 rounds\n" in several.stderr
    assert several.stderr.count("complete in") == 4
    (played,) = tmp_path.glob("*/as-configured")
    for seed in range(100, 105):
        (failed := played / f"seed-{seed:04}").mkdir()
        RunDirectory(failed).finish({"status": "failed", "wall_seconds": 1e6})
    again = flmarket(*brief, "--seeds", "9", "--jobs", "2", "--out", str(tmp_path))
    assert re.search("\n5 runs: seeds 3-6, 8, 3 rounds, about \\S+ s, going by earlier runs\n", again.stderr)


@pytest.mark.slow
def test_a_first_run_in_a_terminal_ends_with_what_to_do_next(tmp_path: Path) -> None:
    """The commands it says to type work as they stand; cut short here."""
    told = in_terminal("run", "quickstart", "--rounds", "1", cwd=tmp_path)
    steps = re.findall(r"^    (?:'.+'|\S+) (\w+ .*)$", told, re.M)
    (run,) = tmp_path.glob("runs/*/as-configured/seed-0000")
    assert steps[0] == f"replay {run.relative_to(tmp_path)}"
    short = {"run": ("--rounds", "1", "--seed", "0", "--set", "training.backend=surrogate")}
    for step in steps[1:]:
        command, _, file = step.replace(" --seeds 5", "").partition(" > ")
        done = flmarket(*command.split(), *short.get(command.split()[0], ()), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        if file:
            (tmp_path / file).write_text(done.stdout)
    assert len(steps) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [("--quiet",), ("--policy", "hqfa"), ("--out", "my runs"), ("paper", *SURROGATE)], ids=" ".join
)
def test_who_wants_silence_or_has_gone_on_is_not_told_what_to_do_next(more: tuple[str, ...], tmp_path: Path) -> None:
    told = in_terminal("run", "quickstart", *more, "--rounds", "1", cwd=tmp_path)
    assert "rounds.csv" in told
    assert "next" not in told


def in_terminal(*words: str, cwd: Path) -> str:
    """Return what a command prints in a terminal."""
    with Terminal([*CLI, *words], cwd) as terminal:
        assert terminal.end() == 0, terminal.written
    return terminal.written.decode().replace("\r\n", "\n")


def test_one_seed_is_named_and_many_are_counted(batch: Path) -> None:
    def seeds(*words: str) -> list[int]:
        done = flmarket("run", "shell.toml", "--dry-run", *words, cwd=batch)
        assert done.returncode == 0, done.stderr
        return [int(seed) for seed in re.findall(r"seed-0*(\d+)$", done.stdout, re.M)]

    assert seeds() == [0]
    assert seeds("--seed", "101") == [101]
    assert seeds("--seed", "7", "--seed", "3", "--seed", "7") == [7, 3]
    assert seeds("--seeds", "101") == list(range(101))


@pytest.mark.parametrize("command", ["run", "train", "league", "suite"])
def test_seeds_means_the_same_everywhere_and_goes_without_seed(command: str, tmp_path: Path) -> None:
    told = re.sub(r"[\s│]+", " ", flmarket(command, "--help", env={"COLUMNS": "200"}).stdout)
    count = "`2`: the first two" if command == "suite" else "`10`: seeds 0 to 9"
    assert f"a count ({count}), a list (`0,3,7`) or a range (`0..9`)." in told
    assert "A single seed, instead of --seeds. Repeatable." in told
    what = {"train": ["--out", "agent"], "league": ["--policy", "hqfa", "--policy", "lcfa"]}.get(command, [])
    named = "hqfa" if command == "suite" else "quickstart"
    done = flmarket(command, named, *what, "--seeds", "3", "--seed", "5", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "choose one of --seeds, a count, a list or a range, and --seed, which is one each time\n"
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_skips_the_complete_run(quick_run: tuple[Path, Done]) -> None:
    out, first = quick_run
    second = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))
    assert second.returncode == 0
    assert "already complete, skipped (the option fresh plays it again)" in second.stderr
    assert second.stdout == first.stdout


def test_quiet_leaves_only_results(quick_run: tuple[Path, Done]) -> None:
    out, first = quick_run
    quiet = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out), "--quiet")
    assert (quiet.stdout, quiet.stderr) == (first.stdout, "")


def test_meta_data_say_what_ran(quick_run: tuple[Path, Done]) -> None:
    out, _ = quick_run
    meta = json.loads(next(out.rglob("meta.json")).read_text())
    assert (meta["status"], meta["seed"], meta["policy"], meta["rounds"]) == ("complete", 0, "as-configured", 3)
    assert set(meta["kernel"]) == set(pd.read_csv(next(out.rglob("rounds.csv")))["service"])
    assert all(digest for files in meta["data"].values() for digest in files["sha256"].values())


def test_a_dry_run_lists_what_would_run_and_what_is_complete(batch: Path) -> None:
    done = flmarket("run", "shell.toml", "--policy", "random", "--seeds", "3", "--dry-run", cwd=batch)
    assert done.returncode == 0
    *lines, training, last = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["complete", "complete", "run"]
    assert training.startswith("training  digits: cnn, local_epochs ")
    assert last == "1 to run, 2 complete"
    assert len(list(batch.glob("runs/*/random/*"))) == 2


@pytest.mark.slow
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


def test_the_command_names_trackers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    few = ("run", "quickstart", "--backend", "surrogate", "--rounds", "2")
    done = flmarket(*few, "--track", "tensorboard=runs", cwd=tmp_path)  # also the folder of runs
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("runs/quickstart-*/as-configured-seed-0000/events.*"))) == 1
    (tmp_path / "file").touch()
    done = flmarket(*few, "--track", "tensorboard=file", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "file: cannot be made: File exists\n")
    done = flmarket(*few, "--track", "tensorbord", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown tracker 'tensorbord'; did you mean 'tensorboard'?" in done.stderr
    done = flmarket(*few, "--track", "tensorbord", "--dry-run", cwd=tmp_path)
    assert (done.returncode, "unknown tracker 'tensorbord'" in done.stderr) == (2, True)
