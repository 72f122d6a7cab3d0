"""Figures of the calibrations. Matplotlib is imported when one is drawn, without pyplot and its global state."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import FloatArray
from fl.calibrate_dqi import Point
from fl.files import replacing
from fl.quality import DQIParameters, dqi


def draw_dqi(path: Path, name: str, points: Sequence[Point], parameters: DQIParameters) -> None:
    """Draw the paper's Fig. 1 for one data set: mean measured accuracies, and eq. (6) as curves over D, per EMD."""
    axes, save = _figure(6.4, 4.4)
    measured: dict[float, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        # The realised EMD differs a little with D; curves are drawn for the wanted ones.
        measured[round(point.emd, 1)][point.size].append(point.accuracy)
    sizes = np.linspace(min(p.size for p in points), max(p.size for p in points), 200)
    for i, (emd, by_size) in enumerate(sorted(measured.items())):
        colour = _colour(i / max(1, len(measured) - 1))
        x = sorted(by_size)
        means, sds = [np.mean(by_size[d]) for d in x], [np.std(by_size[d]) for d in x]
        axes.errorbar(x, means, yerr=sds, fmt="o", ms=4, lw=1, color=colour, label=f"EMD {emd:g}")
        axes.plot(sizes, dqi(sizes, emd, parameters), color=colour, lw=1.4)
    axes.set(xlabel="data size D (images)", ylabel="test accuracy; DQI", title=f"{name}: measured, and eq. (6) fitted")
    axes.legend(fontsize="small", ncols=2)
    save(path)


def draw_surrogate(
    path: Path,  # the figure's file
    name: str,  # the data set's name
    # for each policy, mean measured and surrogate accuracy [rounds]
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    target: float | None = None,  # the service's target accuracy, drawn as a line
) -> None:
    """Draw held-out policies: accuracy over the rounds as measured (solid) and by the surrogate (dashed)."""
    axes, save = _figure(6.4, 4.4)
    for i, (policy, (real, surrogate)) in enumerate(curves.items()):
        colour = _colour(i / max(1, len(curves) - 1))
        rounds = np.arange(1, len(real) + 1)
        axes.plot(rounds, real, color=colour, lw=1.4, label=policy)
        axes.plot(rounds, surrogate, color=colour, lw=1.2, ls="--")
    if target is not None:
        axes.axhline(target, color="0.6", lw=0.8)
    axes.set(xlabel="round", ylabel="test accuracy", title=f"{name}: real (solid) and surrogate (dashed)")
    axes.legend(fontsize="small")
    save(path)


def figure_name(kind: str, dataset: str) -> str:
    """Return the name of a data set's figure; one that is named by a path has its signs replaced."""
    return f"{kind}-{re.sub('[^A-Za-z0-9._-]+', '-', dataset).strip('.-')}.png"


def _figure(width: float, height: float) -> tuple[Any, Any]:
    """Return axes, and a function that saves their figure without a time or version in it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.grid(visible=True, color="0.92")

    def save(path: Path) -> None:
        with replacing(path) as file:
            figure.savefig(file, format="png", dpi=120, metadata={"Software": None})

    return axes, save


def _colour(part: float) -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"](0.92 * part)
