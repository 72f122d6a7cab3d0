"""The looks of policies in figures: colour and line where they are curves, colour and mark where they are points.

No two of the first 161 policies look the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from flmarket.analysis.results.run_results import RunResult, by_policy

# Colour-blind readers can tell the first seven apart. The number of colours has no factor in common with the numbers of
# lines and marks: where a colour repeats, they differ.
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",  # Okabe and Ito's
    "#882255", "#999933", "#332288", "#7F7F7F", "#661100",  # darker; mostly Tol's
    "#117733", "#AA4499", "#44AA99", "#88CCEE", "#DDCC77", "#CC6677",  # the rest of Tol's
    "#E7298A", "#6A3D9A", "#B2DF8A", "#A6761D", "#5F9EA0",  # ColorBrewer's, and a grey blue
)  # fmt: skip
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")

Styles = Mapping[str, int]  # the number of each policy's style


def numbered(runs: Sequence[RunResult]) -> Styles:
    """Return the number of each policy's style. Take it from all runs that are shown together."""
    return {policy: index for index, policy in enumerate(by_policy(runs))}


def colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def mark(index: int) -> str:
    """Return the mark of a style, as matplotlib names it."""
    return _MARKS[index % len(_MARKS)]


def style(index: int) -> dict[str, Any]:
    """Return colour and line of a style, as matplotlib's keyword arguments."""
    return {"color": colour(index), "linestyle": _LINES[index % len(_LINES)]}
