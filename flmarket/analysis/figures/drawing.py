"""The looks and formats of all figures, a report's and a league's, and the code that writes them.

matplotlib is imported when a figure is asked for. No figure is one of pyplot's, so none needs a screen or a backend.
Policies are told apart by colour and line where they are curves, by colour and mark where they are points. Seven look
different, in colours that colour-blind readers can tell apart; of more, the best and the baseline do, and the others
are grey.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flmarket.analysis.results.run_results import RunResult, by_policy
from flmarket.core.errors import InputError
from flmarket.core.files import replacing
from flmarket.core.tracking import tracked
from learning.statistics import area_under_curve

FORMATS = ("svg", "png", "pdf")

DPI = 200  # of PNG files, and of dots that are too many to be drawn one by one in the others

SETTINGS: Any = {
    "figure.dpi": 100, "font.size": 8, "axes.titlesize": "medium", "lines.linewidth": 1.2,
    "axes.grid": True, "grid.alpha": 0.3,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "svg.hashsalt": "flmarket",
    "pdf.fonttype": 42,  # TrueType, as journals ask for; Type 3 otherwise
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be drawn."""

    name: str  # the name of its files
    caption: str  # what it shows
    draw: Callable[[], Any]  # returns a matplotlib figure


def save(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures as SVG, PNG and PDF; return the paths."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in tracked(list(figures), "figures"):
            for suffix in FORMATS:
                paths.append(folder / f"{figure.name}.{suffix}")
            for path, content in zip(paths[-len(FORMATS) :], images(figure, FORMATS), strict=True):
                with replacing(path) as file:
                    file.write(content)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return paths


def images(figure: Figure, formats: Sequence[str]) -> list[bytes]:
    """Return a figure in some formats. The same figure gives the same bytes."""
    import matplotlib as mpl

    contents = []
    with mpl.rc_context(SETTINGS):
        drawn = figure.draw()
        for suffix in formats:
            # Without a date, the same runs give the same files.
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
            target = io.BytesIO()
            drawn.savefig(target, format=suffix, metadata=metadata, dpi=DPI)
            contents.append(target.getvalue())
            drawn.set_layout_engine(None)  # the other formats keep the first one's layout, which takes long to find
    return contents


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
    curves = (area_under_curve(run["test_accuracy"], run.arrivals, run.lengths) for run in runs)
    return float(np.mean([curve.mean() for curve in curves]))


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
