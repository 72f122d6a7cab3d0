"""``flmarket calibrate`` as a user meets it: real training on an embedded data set."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from support.shell import CLI, Command, Done, flmarket, process

SMALL = """
name = "small"
rounds = 12
dqi = "fitted"

[clients]
count = 6
cores = 1
data_size = [20, 40]
emd = [0.2, 1.0]
cost = { per_sample = 0.05, per_emd = 0.5 }

[training]
model = "mlp"
local_epochs = 1
learning_rate = 0.1

[[services]]
name = "digits"
dataset = "digits"
budget = 5
target_accuracy = 0.9
reward_base = 60
policy = "random"
"""


def calibrate(folder: Path, *arguments: str, run: Command = flmarket) -> Done:
    return run(*arguments, cwd=folder, env={"FLMARKET_FITS": str(folder / "own")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration")
    (path / "small.toml").write_text(SMALL)
    command = ("calibrate", "dqi", "small.toml", "--epochs", "1", "--repetitions", "2", "--out", "out")
    done = calibrate(path, *command, run=process)
    assert done.returncode == 0, done.stderr
    assert "| digits |" in done.stdout
    assert "digits: R^2" in done.stderr
    assert done.stderr.startswith(
        f"Fits will be written to out/dqi.json and to {path}/own/dqi.json, where they replace earlier ones of the same "
        "data set and where all your scenarios find them (set FLMARKET_FITS to change the folder).\n"
    )
    assert f"Fits written to out/dqi.json; scenarios read them from {path}/own/dqi.json\n" in done.stdout
    assert "digits: warning: a poor fit: R^2 of the means is " in done.stderr
    return path


@pytest.mark.slow
def test_dqi_writes_points_fits_table_and_figure(folder: Path) -> None:
    assert {path.name for path in (folder / "out").iterdir()} >= {
        "dqi-points.csv", "dqi.json", "dqi.md", "dqi-digits.png",
    }  # fmt: skip
    (fit,) = json.loads((folder / "own" / "dqi.json").read_text())
    assert fit["regime"]["local_epochs"] == 1
    assert fit == json.loads((folder / "out" / "dqi.json").read_text())[0]


@pytest.mark.slow
def test_dqi_goes_on_where_it_was_killed_and_ends_with_the_same_bytes(folder: Path) -> None:
    points, again = folder / "out" / "dqi-points.csv", folder / "again"
    again.mkdir()
    whole = points.read_bytes()
    # As a kill leaves it: some points, the last line cut off.
    (again / "dqi-points.csv").write_bytes(whole[: len(whole) // 2])
    done = calibrate(folder, "calibrate", "dqi", "small.toml", "--epochs", "1", "--repetitions", "2",
                     "--out", "again")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("dqi-points.csv", "dqi.json", "dqi.md"):
        assert (again / name).read_bytes() == (folder / "out" / name).read_bytes()


@pytest.mark.slow
def test_surrogate_fits_tests_and_then_runs(folder: Path) -> None:
    command = ("calibrate", "surrogate", "small.toml", "--runs", "3", "--held-out", "1", "--out", "out")
    done = calibrate(folder, *command, run=process)
    assert done.returncode == 0, done.stderr
    assert "Spearman" in done.stdout
    assert (folder / "out" / "surrogate-digits.png").stat().st_size > 1000
    table = (folder / "out" / "surrogate.md").read_bytes()
    kept = {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "traces").iterdir()}
    assert calibrate(folder, *command).returncode == 0
    assert kept == {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "traces").iterdir()}
    assert (folder / "out" / "surrogate.md").read_bytes() == table
    run = calibrate(folder, "run", "small.toml", "--set", "training.backend=surrogate", "--quiet")
    assert run.returncode == 0, run.stderr
    noted = calibrate(folder, "run", "small.toml", "--set", "training.backend=surrogate", "--fresh")
    assert 'backend = "surrogate": accuracies follow fitted curves' in noted.stderr


def test_a_foreign_file_in_the_way_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "dqi-points.csv").write_text("a,b\n1,2\n")
    done = calibrate(tmp_path, "calibrate", "dqi", "small.toml", "--out", ".")
    assert done.returncode == 2
    assert "does not hold calibration points" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [0, 1])
def test_a_full_disk_is_one_line(blocks: int, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; in blocks of 1,024 bytes."""
    (tmp_path / "small.toml").write_text(SMALL)
    command = shlex.join([*CLI, "calibrate", "dqi", "small.toml", "--epochs=1", "--repetitions=2", "--out=fits"])
    limited = f"ulimit -f {blocks}; {command}"
    done = subprocess.run(["/bin/bash", "-c", limited], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "dqi-points.csv: cannot be written: File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
