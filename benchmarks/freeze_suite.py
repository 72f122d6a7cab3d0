"""Freezes a version of the suite: plays the references, and writes the manifest that `flmarket suite` checks.

    python benchmarks/freeze_suite.py --work build/suite --submissions research/results/suite --jobs 2

Edit `suite.toml` and `markets/` first. The digest that is printed goes into `scenarios/suite/frozen.py`.
"""

import argparse
import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from flmarket.benchmark.suite.submission import Submission, continued, entry, play
from scenarios.suite.frozen import CONTENTS, FLOOR, FOLDER, MANIFEST, PRIVILEGED, REFERENCES, Suite, unfrozen

GAP = 0.01
"""The least difference between the reference of residents and `random`, by which scores are divided."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for what has been played")
    parser.add_argument("--submissions", type=Path, help="folder for the references' submissions")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    print(freeze(FOLDER, arguments.work, arguments.submissions, arguments.jobs))


def freeze(folder: Path, work: Path, submissions: Path | None = None, jobs: int = 1) -> str:
    """Play the references of the suite in a folder, write its files, and return its digest.

    What ``work`` has already is not played again. A version that has been released is never frozen again.
    """
    for made in (work, submissions):
        if made is not None:
            made.mkdir(parents=True, exist_ok=True)
    suite = unfrozen(folder)
    played = references(suite, work, jobs)
    (folder / REFERENCES).write_text(table(suite, played))
    manifest = manifest_of(folder)
    (folder / MANIFEST).write_bytes(manifest)
    for name in suite.markets:
        found = gap(suite, name, played)
        print(f"{name:24}{found:+.4f}" + ("  too little" if found < GAP else ""))
    digest = hashlib.sha256(manifest).hexdigest()
    if submissions is not None:
        for policy, submission in played.items():
            replace(submission, digest=digest).write(submissions / f"{policy}.json", suite)
    return digest


def references(suite: Suite, work: Path, jobs: int) -> dict[str, Submission]:
    """Return what each reference reached, a seed at a time."""
    found = {}
    for seed in suite.seeds:
        for policy in (FLOOR, *PRIVILEGED, *suite.rivals):
            path = work / f"{policy}.json"
            begun = continued(path, entry(policy, suite), suite)
            cells = suite.cells(seeds=(seed,))
            keep = partial(Submission.write, path=path, suite=suite)
            found[policy] = play(policy, suite, cells=cells, begun=begun, jobs=jobs, keep=keep)
            print(f"seed {seed}: {policy}", flush=True)
    return found


def table(suite: Suite, played: dict[str, Submission]) -> str:
    """Return the references as CSV, a line for each run."""
    lines = [["market", "mode", "seat", "seed", *played]]
    for cell in suite.cells():
        aucs = [f"{submission.results[cell]:.6f}" for submission in played.values()]
        lines.append([cell.market, cell.mode, cell.seat, str(cell.seed), *aucs])
    return "".join(",".join(line) + "\n" for line in lines)


def manifest_of(folder: Path) -> bytes:
    """Return the manifest of a suite's files as they are."""
    paths = [folder / CONTENTS, folder / REFERENCES, *sorted((folder / "markets").iterdir())]
    files = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return (json.dumps(files, indent=2) + "\n").encode()


def gap(suite: Suite, name: str, played: dict[str, Submission]) -> float:
    """Return how far above `random` the better reference of residents is."""
    cells = suite.cells(("resident",), (name,))
    mean = {policy: sum(it.results[cell] for cell in cells) / len(cells) for policy, it in played.items()}
    return max(mean[policy] for policy in PRIVILEGED) - mean[FLOOR]


if __name__ == "__main__":
    main()
