"""The looks of policies in figures: colour and line where they are curves, colour and mark where they are points.

Seven policies look different, in colours that colour-blind readers can tell apart. Of more, the best and the baseline
do, and the others are grey.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flmarket.analysis.results.run_results import RunResult, by_policy
from learning.statistics.area_under_curve import area_under_curve

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "0.75"

BEST = 5  # policies that stand out where there are more than seven

Styles = Mapping[str, int | None]  # the number of each policy's style; None: one of the others


def numbered(
    runs: Sequence[RunResult],  # all that are shown together
    baseline: str | None = None,  # a policy that stands out in any case
) -> Styles:
    """Return the number of each policy's style."""
    policies = by_policy(runs)
    shown = list(policies)
    if len(shown) > len(_COLOURS):
        best = sorted(policies, key=lambda policy: -_accuracy(policies[policy]))[:BEST]
        shown = best if baseline in best or baseline not in policies else [*best, baseline]
    return {policy: shown.index(policy) if policy in shown else None for policy in policies}


def _accuracy(runs: Sequence[RunResult]) -> float:
    return float(np.mean([area_under_curve(run["test_accuracy"], run.setting.arrivals).mean() for run in runs]))


def colour(index: int | None) -> str:
    return _GREY if index is None else _COLOURS[index]


def mark(index: int | None) -> str:
    """Return the mark of a style, as matplotlib names it."""
    return "o" if index is None else _MARKS[index]


def style(index: int | None) -> dict[str, Any]:
    """Return colour, line and depth of a style, as matplotlib's keyword arguments."""
    if index is None:
        return {"color": _GREY, "linestyle": "-", "linewidth": 0.8, "zorder": 1.5}
    return {"color": colour(index), "linestyle": _LINES[index], "zorder": 2}
