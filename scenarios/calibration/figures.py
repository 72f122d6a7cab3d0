"""Figures of the calibrations. Matplotlib is imported when one is drawn, without pyplot and its global state."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import FloatArray
from fl.calibration.dqi_fit import Point
from fl.data.dqi import DQIParameters, dqi
from flmarket.core.files import replacing


def draw_dqi(path: Path, name: str, points: Sequence[Point], parameters: DQIParameters) -> None:
    """Draw the paper's Fig. 1 for one data set: mean measured accuracies, and eq. (6) as curves over D, per EMD."""
    measured: dict[float, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        # The realised EMD differs a little with D; curves are drawn for the wanted ones.
        measured[round(point.emd, 1)][point.size].append(point.accuracy)
    sizes = np.linspace(min(p.size for p in points), max(p.size for p in points), 200)
    axes = _axes(f"{name}: measured, and eq. (6) fitted", "data size D (images)", "test accuracy; DQI")
    for colour, (emd, by_size) in zip(_colours(len(measured)), sorted(measured.items()), strict=True):
        x = sorted(by_size)
        means, sds = [np.mean(by_size[d]) for d in x], [np.std(by_size[d]) for d in x]
        axes.errorbar(x, means, yerr=sds, fmt="o", ms=4, lw=1, color=colour, label=f"EMD {emd:g}")
        axes.plot(sizes, dqi(sizes, emd, parameters), color=colour, lw=1.4)
    axes.legend(fontsize="small", ncols=2)
    _save(axes, path)


def draw_surrogate(
    path: Path,  # the figure's file
    name: str,  # the data set's name
    # for each policy, mean measured and surrogate accuracy [rounds]
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    target: float,  # the service's target accuracy, drawn as a line
) -> None:
    """Draw held-out policies: accuracy over the rounds as measured (solid) and by the surrogate (dashed)."""
    axes = _axes(f"{name}: real (solid) and surrogate (dashed)", "round", "test accuracy")
    for colour, (policy, (real, surrogate)) in zip(_colours(len(curves)), curves.items(), strict=True):
        rounds = np.arange(1, len(real) + 1)
        axes.plot(rounds, real, color=colour, lw=1.4, label=policy)
        axes.plot(rounds, surrogate, color=colour, lw=1.2, ls="--")
    axes.axhline(target, color="0.6", lw=0.8)
    axes.legend(fontsize="small")
    _save(axes, path)


def figure_name(kind: str, dataset: str) -> str:
    """Return the name of a data set's figure; one that is named by a path has its signs replaced."""
    return f"{kind}-{re.sub('[^A-Za-z0-9._-]+', '-', dataset).strip('.-')}.png"


def _axes(title: str, x: str, y: str) -> Any:
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6.4, 4.4), layout="constrained").add_subplot()
    axes.grid(visible=True, color="0.92")
    axes.set(xlabel=x, ylabel=y, title=title)
    return axes


def _colours(count: int) -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0.0, 0.92, count))


def _save(axes: Any, path: Path) -> None:
    with replacing(path) as file:
        axes.figure.savefig(file, format="png", dpi=120, metadata={"Software": None})
