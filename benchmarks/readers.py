"""The memory that commands take that read a run's logs.

python benchmarks/readers.py
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Report

CLI = [sys.executable, "-P", "-m", "flmarket.cli.main"]
PLAY = ["run", "paper", "--backend", "surrogate", "--policy", "random", "--quiet"]
STAY = [f"--set=services.{name}.target_accuracy=1.0" for name in ("mnist", "fashion-mnist", "emnist")]


def peak(*arguments: str) -> float:
    """Return the peak memory of a command, MB."""
    with subprocess.Popen([*CLI, *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} failed with exit status {process.returncode}")
    return usage.ru_maxrss / 1000


def played(folder: Path, *arguments: str) -> tuple[str, float]:
    """Return the directory of a new run, and the size of its logs, MB."""
    peak(*PLAY, *STAY, *arguments, "--out", str(folder))
    [run] = [path.parent for path in folder.glob("*/*/*/meta.json")]
    return str(run), sum(path.stat().st_size for path in run.glob("*.csv")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000, help="of the run that is verified")
    parser.add_argument("--clients", type=int, default=100_000, help="in the round that is explained")
    parser.add_argument("--no-save", action="store_true", help="leave results/speed.jsonl as it is")
    given = parser.parse_args()
    report = Report(save=not given.no_save)
    with TemporaryDirectory() as folder:
        run, size = played(Path(folder, "long"), "--rounds", str(given.rounds))
        what = f"`flmarket verify` of {given.rounds:,} rounds of `paper`, {size:.0f} MB of logs, peak memory"
        report.figure(what, "MB", [peak("verify", run)])
        run, _ = played(Path(folder, "large"), "--rounds", "2", "--set", f"clients.count={given.clients}")
        what = f"`flmarket explain` of a round of {given.clients:,} clients, peak memory"
        report.figure(what, "MB", [peak("explain", run, "--round", "2", "--service", "mnist")])
    report.close()


if __name__ == "__main__":
    main()
