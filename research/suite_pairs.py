"""Compares `mahdrl` in the suite with more than the frozen references: research/notebook/leaderboard.md.

    python research/suite_pairs.py research/results/suite

It meets the best of all rules with a submission, the `oracle`, and itself without a learning curve. Plays nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from experiment import command_line
from further_seeds import WITHIN

from fl.arrays import FloatArray
from flmarket.benchmark.suite.scoring import Result, SuiteStanding, against_zero, standings
from flmarket.benchmark.suite.submission import read_all
from flmarket.core.text_table import TextTable
from scenarios.suite.frozen import FLOOR, RESIDENT, VISITOR, Suite, read

METHODS = ("mahdrl", "mahdrl-untold")
ORACLE = "oracle"
Key = tuple[str, str]
Other = Callable[[Result], FloatArray]
"""Returns the AUC [S], or [T, S] of as many trainings, that a result is compared with."""


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, help="submissions to the suite")
    print(table(parser.parse_args().folder, read()).markdown())


def table(folder: Path, suite: Suite) -> TextTable:
    """Return how much more AUC the methods have than others, and in how many markets less by more than ``WITHIN``."""
    found = {it.method: it for it in standings(read_all([folder], suite), suite)}
    if lacking := [name for name in (*METHODS, ORACLE) if name not in found or found[name].missing]:
        raise SystemExit(f"{folder}: has no whole submission of {', '.join(lacking)}")
    rules = [it for it in found.values() if not it.privileged and it.method not in (*METHODS, "mahdrl-single", FLOOR)]
    heads = ["method", "minus", RESIDENT, VISITOR, f"{VISITOR}, contested", f"behind: {RESIDENT}", f"behind: {VISITOR}"]
    rows = []
    for method in METHODS:
        compared: dict[str, Other] = {
            "the best of the four references": lambda it: it.rival,
            f"the best of all {len(rules)} rules": best_of(rules),
            f"{ORACLE}, privileged": of_trainings(found[ORACLE]),
        }
        if method == METHODS[0]:
            compared[METHODS[1]] = of_trainings(found[METHODS[1]])
        rows += [[method, name, *cells(found[method], other)] for name, other in compared.items()]
    return TextTable("AUC less that of others", heads, rows)


# The best rule of a market is the one with the highest mean over the very seeds that it is compared in, which flatters
# it.
def best_of(rules: Sequence[SuiteStanding]) -> Other:
    """Return what gives the AUC [S] of the best of some rules in the market and mode of a result."""
    aucs = [_aucs(it) for it in rules]
    return lambda it: max((one[it.market.name, it.mode][0] for one in aucs), key=lambda auc: float(auc.mean()))


def of_trainings(standing: SuiteStanding) -> Other:
    """Return what gives the AUC [T, S] of a method's trainings in the market and mode of a result."""
    aucs = _aucs(standing)
    return lambda it: aucs[it.market.name, it.mode]


def cells(standing: SuiteStanding, other: Other) -> list[str]:
    """Return mean differences of the AUC with their intervals, and the numbers of markets behind."""
    shown = []
    for mode, contested in ((RESIDENT, False), (VISITOR, False), (VISITOR, True)):
        found = [it.auc - other(it) for it in standing.chosen(mode, contested=contested)]
        one = against_zero(np.mean(found, axis=0))
        shown.append(f"{one.estimate:+.4f} [{one.low:+.4f}, {one.high:+.4f}]")
    for mode in (RESIDENT, VISITOR):
        found = [it.auc - other(it) for it in standing.chosen(mode)]
        shown.append(f"{sum(one.mean() < -WITHIN for one in found)} of {len(found)}")
    return shown


def _aucs(standing: SuiteStanding) -> Mapping[Key, FloatArray]:
    return {(it.market.name, it.mode): it.auc for it in standing.results}


if __name__ == "__main__":
    main()
