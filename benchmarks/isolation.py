"""What `flmarket run` takes here against another checkout, such as the one before runs had a process of their own.

    python benchmarks/isolation.py CHECKOUT [REPETITIONS]

Both take turns. Wall time is that of the whole command, CPU time that of all its processes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = str(Path(__file__).resolve().parents[1])
KINDS = {"surrogate": ["--set", "training.backend=surrogate"], "real": []}


def once(checkout: str, arguments: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of one command."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-P", "-m", "tui.cli", "run", "quickstart", "--rounds", "3", "--out", out, "--quiet"]
        began, before = time.perf_counter(), os.times()
        environment = os.environ | {"PYTHONPATH": checkout}
        subprocess.run([*command, *arguments], check=True, capture_output=True, env=environment, cwd=out)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return time.perf_counter() - began, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=os.path.realpath, help="the other checkout, its kernel built in place")
    parser.add_argument("repetitions", type=int, nargs="?", default=7, help="of each kind")
    given = parser.parse_args()
    for kind, arguments in KINDS.items():
        pairs = [(once(given.checkout, arguments), once(HERE, arguments)) for _ in range(given.repetitions)]
        ratio = statistics.median(here[0] / there[0] for there, here in pairs)
        cpu = [statistics.median(one[1] for one in column) for column in zip(*pairs, strict=True)]
        print(f"{kind}: {ratio:.2f} of the wall time; CPU {cpu[0]:.1f} s there, {cpu[1]:.1f} s here")


if __name__ == "__main__":
    main()
