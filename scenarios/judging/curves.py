"""Curves of a quantity by round, for notebooks and scripts: the figure that ``Results.plot`` returns."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from des.records import FloatArray
from fl.errors import InputError
from fl.names import unknown
from scenarios.judging.figures import SETTINGS, by_policy, draw_curves
from scenarios.judging.results import RunResult

QUANTITIES = {
    "accuracy": "test accuracy, %",
    "reward": "reward (Omega^accuracy)",
    "spent": "money spent",
    "wanted": "offers made",
    "served": "offers served",
    "refused": "offers refused",
}
"""What can be plotted, and the label of its axis."""


def curves(runs: Sequence[RunResult], what: str) -> Any:
    """Return a figure of a quantity by round: a row of panels for each scenario, a panel for each of its services.

    The figure is not one of pyplot's: it leaves the caller's backend alone, is shown once by a notebook, and is saved
    with ``savefig``.

    Raises:
        InputError: there is no such quantity, or matplotlib is not installed.
    """
    if what not in QUANTITIES:
        raise InputError(unknown("quantity", what, QUANTITIES))
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'flmarket[report]'") from error

    class Picture(Figure):
        """Shows itself in notebooks, without pyplot."""

        def _repr_png_(self) -> bytes:
            target = io.BytesIO()
            self.savefig(target, format="png", dpi=100)
            return target.getvalue()

    rows: dict[str, list[RunResult]] = {}
    for run in runs:
        rows.setdefault(str(run.setting.folder), []).append(run)
    columns = max(len(run.setting.services) for run in runs)
    with mpl.rc_context(SETTINGS):
        figure = Picture(figsize=(3.4 * columns, 2.8 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), columns, sharex="row", sharey="row", squeeze=False)
        for line, of in zip(axes, rows.values(), strict=True):
            _row(line, of, what)
        axes[0, 0].legend()
    return figure


def _row(panels: Sequence[Any], runs: Sequence[RunResult], what: str) -> None:
    setting = runs[0].setting
    for m, (axes, service) in enumerate(zip(panels, setting.services, strict=False)):
        for index, (policy, own) in enumerate(by_policy(runs).items()):
            draw_curves(axes, policy, index, np.array([_values(run, what)[:, m] for run in own]))
        if what == "accuracy":
            axes.axhline(100 * setting.targets[m], color="0.4", linewidth=0.8, linestyle=(0, (1, 3)))
        axes.set(title=service, xlabel="round")
    for unused in panels[len(setting.services) :]:
        unused.set_visible(False)
    panels[0].set_ylabel(QUANTITIES[what])
    if setting.sweep:
        panels[0].set_title(f"{setting.label}\n{setting.services[0]}")


def _values(run: RunResult, what: str) -> FloatArray:
    """Return [N, M] a quantity by round and service, in the unit of its axis."""
    values: FloatArray = getattr(run, what)
    return 100 * values if what == "accuracy" else values
