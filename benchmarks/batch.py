"""The start of commands, the scaling of batches, and the costs of checkpoints and reports.

    python benchmarks/batch.py

Run it on an idle machine.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Report, waited_for

from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.digests import seal
from scenarios.running import checkpoint
from scenarios.running.planning import plan
from scenarios.running.runner import execute

# Each run takes some ten seconds, so that starting Python hardly counts, and no service leaves early.
TARGETS = [f"--set=services.{name}.target_accuracy=1.0" for name in ("digits", "strokes", "scribbles")]
CLI = [sys.executable, "-P", "-m", "flmarket.cli.main"]
RUN = ["run", "quickstart", "--rounds", "300", *TARGETS, "--workers", "1", "-q"]


def flmarket(*arguments: str) -> float:
    """Return how many seconds a command takes."""
    begun = time.perf_counter()
    subprocess.run([*CLI, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def starts(report: Report, repeat: int) -> None:
    """Time commands by the CPU that they and their workers take."""
    with tempfile.TemporaryDirectory() as folder:
        play = [*CLI, "run", "quickstart", "--fresh", "--quiet", "--out", folder]
        contestants = {
            "`flmarket --help`": [*CLI, "--help"],
            "`import flmarket`": [sys.executable, "-P", "-c", "import flmarket"],
            "`flmarket run quickstart --fresh`": play,
            "`flmarket run quickstart --fresh --backend surrogate`, which trains nothing": [
                *play,
                "--backend=surrogate",
            ],
        }
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(repeat):
            for name, command in contestants.items():
                before = waited_for()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                taken[name].append(waited_for() - before)
    for name, seconds in taken.items():
        report.figure(name, "s of CPU", seconds)


def jobs(report: Report, folder: Path, seeds: str) -> None:
    one, two = (flmarket(*RUN, "--seeds", seeds, "--jobs", str(n), "--out", str(folder / f"j{n}")) for n in (1, 2))
    report.times(f"{seeds} equal runs, `--jobs 2` against `--jobs 1`", [one], [two])


def checkpoints(report: Report, folder: Path, scenario: str) -> None:
    """Time each save of a checkpoint, one a round."""
    shelf, saves = Shelf(), []
    save = checkpoint.save

    def timed(*arguments: object) -> None:
        begun = time.perf_counter()
        save(*arguments)  # type: ignore[arg-type]
        saves.append(time.perf_counter() - begun)

    checkpoint.save, checkpoint.INTERVAL = timed, 0.0  # type: ignore[assignment]
    [run] = plan([load(scenario, ["rounds=12"])], [], [0], folder, shelf)
    execute(run, shelf, workers=2)
    checkpoint.save = save
    report.figure(f"a checkpoint of `{scenario}`", "ms", [1000 * it for it in saves])


def reports(report: Report, folder: Path, runs: int) -> None:
    """Copy one run of 80 rounds to many seeds, and report on all of them."""
    shelf = Shelf()
    overrides = ["rounds=80", "training.backend=surrogate"]
    [run] = plan([load("paper", overrides)], ["random"], [0], folder / "many", shelf)
    execute(run, shelf)
    meta = run.directory.meta()
    for seed in range(1, runs):
        copy = run.directory.path.with_name(f"seed-{seed:04d}")
        shutil.copytree(run.directory.path, copy)
        (copy / "meta.json").write_bytes(seal(copy, meta["files"], meta | {"seed": seed}))
    begun = time.process_time()
    make_report(read([folder / "many"]))
    taken = time.process_time() - begun
    report.figure(f"a report on {runs:,} runs of {run.scenario.rounds} rounds", "s of CPU", [taken])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="4", help="number of equal runs (default: 4)")
    parser.add_argument("--repeat", type=int, default=6, help="repetitions of short commands (default: 6)")
    parser.add_argument("--runs", type=int, default=1000, help="number of runs to report on (default: 1000)")
    parser.add_argument("--scenario", default="quickstart", help="scenario whose checkpoints are timed")
    parser.add_argument("--no-save", dest="save", action="store_false", help="keep nothing in benchmarks/results/")
    chosen = parser.parse_args()
    report = Report(save=chosen.save)
    starts(report, chosen.repeat)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints(report, Path(folder), chosen.scenario)
        reports(report, Path(folder), chosen.runs)
        jobs(report, Path(folder), chosen.seeds)
    report.close()


if __name__ == "__main__":
    main()
