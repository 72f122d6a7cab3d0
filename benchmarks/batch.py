"""The scaling of batches, and the costs of checkpoints, reports and Ray.

    python benchmarks/batch.py [--ray]

Only ratios within one run are claimed; run it on an idle machine.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.running import checkpoint
from scenarios.running.planning import plan
from scenarios.running.runner import execute

# Each run takes some ten seconds, so that starting Python hardly counts, and no service leaves early.
TARGETS = [f"--set=services.{name}.target_accuracy=1.0" for name in ("digits", "strokes", "scribbles")]
RUN = ["run", "quickstart", "--rounds", "300", *TARGETS, "--workers", "1", "-q"]


def flmarket(*arguments: str) -> float:
    """Return how many seconds a command takes."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-m", "flmarket.cli.main", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def jobs(folder: Path, seeds: str, *, ray: bool) -> None:
    one, two = (flmarket(*RUN, "--seeds", seeds, "--jobs", str(n), "--out", str(folder / f"j{n}")) for n in (1, 2))
    print(f"{seeds} equal runs: --jobs 1 {one:.1f} s, --jobs 2 {two:.1f} s: {one / two:.2f} x")
    if ray:
        far = flmarket(*RUN, "--seeds", seeds, "--engine", "ray", "--out", str(folder / "ray"))
        print(f"{seeds} equal runs: --engine ray {far:.1f} s: {(far - two) / int(seeds):+.2f} s a run against --jobs 2")


def checkpoints(folder: Path, scenario: str) -> None:
    """Time each save of a checkpoint, against the round before it."""
    shelf, rounds, saves = Shelf(), [], []
    save = checkpoint.save

    def timed(*arguments: object) -> None:
        begun = time.perf_counter()
        save(*arguments)  # type: ignore[arg-type]
        saves.append(time.perf_counter() - begun)

    checkpoint.save, checkpoint.INTERVAL = timed, 0.0  # type: ignore[assignment]
    last = [time.perf_counter()]

    def observe(_: object) -> None:
        now = time.perf_counter()
        rounds.append(now - last[0])
        last[0] = now

    [run] = plan([load(scenario, ["rounds=12"])], [], [0], folder, shelf)
    execute(run, shelf, workers=2, observers=[observe])
    checkpoint.save = save
    cost, length = statistics.median(saves), statistics.median(rounds[1:]) - statistics.median(saves)
    apart = max(length, 5.0)
    print(
        f"{scenario}: a checkpoint takes {1000 * cost:.1f} ms, a round {1000 * length:.0f} ms: "
        f"{100 * cost / length:.1f} % if saved every round, {100 * cost / apart:.2f} % as saved (5 s apart)"
    )


def reports(folder: Path, runs: int) -> None:
    """Copy one run of 80 rounds to many seeds, and report on all of them."""
    shelf = Shelf()
    overrides = ["rounds=80", "training.backend=surrogate"]
    [run] = plan([load("paper", overrides)], ["random"], [0], folder / "many", shelf)
    execute(run, shelf)
    meta = (run.directory.path / "meta.json").read_text()
    for seed in range(1, runs):
        copy = run.directory.path.with_name(f"seed-{seed:04d}")
        shutil.copytree(run.directory.path, copy)
        (copy / "meta.json").write_text(meta.replace('"seed": 0', f'"seed": {seed}'))
    begun = time.perf_counter()
    make_report(read([folder / "many"]))
    print(f"report on {runs} runs of {run.scenario.rounds} rounds: {time.perf_counter() - begun:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ray", action="store_true", help="also measure with Ray")
    parser.add_argument("--seeds", default="8", help="number of equal runs (default: 8)")
    parser.add_argument("--runs", type=int, default=1000, help="number of runs to report on (default: 1000)")
    parser.add_argument("--scenario", default="quickstart", help="scenario whose checkpoints are timed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkpoints(Path(folder), chosen.scenario)
        reports(Path(folder), chosen.runs)
        jobs(Path(folder), chosen.seeds, ray=chosen.ray)


if __name__ == "__main__":
    main()
