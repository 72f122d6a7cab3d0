"""``make mutants``: see ``--help``."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from mutants.chosen import CHOSEN, Chosen
from mutants.places import nearest
from mutants.sample import Mutant, sample
from mutants.trial import Outcome, Record, attempt, copy_of, outcome

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Try a sample of mutants, and print those that no test found. The status is 1 if tests fail without a mutant."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws others")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for the tests of a mutant")
    parser.add_argument("--record", type=Path, default=ROOT / ".mutants" / "found.jsonl", help="mutants found so far")
    parser.add_argument("--only", nargs="*", default=(), help="patterns of modules, such as des/costs/*.py")
    parser.add_argument("--chosen", action="store_true", help="try those that are chosen by hand instead")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a mutant first")
    given = parser.parse_args()
    if given.chosen:
        with copy_of(ROOT) as copy:
            left = [it for it in CHOSEN if _survives(it, copy, given.timeout)]
        print(f"{len(CHOSEN)} mutants: {len(left)} survived", *left, sep="\n")
        return 1 if left else 0
    record = Record(given.record)
    drawn = sample(ROOT, given.number, given.seed, given.only)
    open_ = [mutant for mutant in drawn if _key(mutant) not in record]
    with ExitStack() as stack:
        copies: SimpleQueue[Path] = SimpleQueue()
        for _ in range(given.jobs):
            copies.put(stack.enter_context(copy_of(ROOT)))

        def try_(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                return attempt(copy, mutant.module, mutant.source(ROOT), given.timeout)
            finally:
                copies.put(copy)

        if not given.trust and (failing := _failing(copies, open_)):
            print("these tests fail without a mutant:", *failing)
            return 1
        outcomes = Counter({Outcome.FAILED: len(drawn) - len(open_)})
        with ThreadPoolExecutor(given.jobs) as pool:
            for mutant, came_out in zip(open_, pool.map(try_, open_), strict=True):
                outcomes[came_out] += 1
                if came_out is Outcome.FAILED:
                    record.add(_key(mutant))
                else:
                    print(f"{came_out}: {mutant.name}\n{mutant.diff(ROOT)}", flush=True)
    print(f"{len(drawn)} mutants:", ", ".join(f"{outcomes[kind]} {kind}" for kind in Outcome))
    return 0


def _survives(mutant: Chosen, copy: Path, seconds: float) -> bool:
    tests = [Path(name) for name in mutant.tests]
    return attempt(copy, Path(mutant.module), mutant.source(ROOT), seconds, tests) is Outcome.PASSED


def _key(mutant: Mutant) -> tuple[str, str]:
    return mutant.name, mutant.diff(ROOT)


def _failing(copies: SimpleQueue[Path], mutants: Iterable[Mutant]) -> list[Path]:
    """Return the tests, if any, that would fail without a mutant and so would seem to find all."""
    copy = copies.get()
    tests = sorted({path for mutant in mutants for path in nearest(ROOT, mutant.module)})
    failing = [test for test in tests if outcome(copy, [test], 600.0) is not Outcome.PASSED]
    copies.put(copy)
    return failing


if __name__ == "__main__":
    sys.exit(main())
