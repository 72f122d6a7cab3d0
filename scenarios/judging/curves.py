"""Curves of a quantity by round, for notebooks and scripts: the figure that ``Results.plot`` returns."""

import io
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from fl.errors import InputError
from fl.names import unknown
from scenarios.judging.figures import SETTINGS, draw_accuracy, draw_service
from scenarios.judging.results import RunResult, by_setting

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

    rows = by_setting(runs)
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
    for m, axes in enumerate(panels[: len(setting.services)]):
        if what == "accuracy":
            draw_accuracy(axes, m, runs)
        else:
            draw_service(axes, m, runs, attrgetter(what))
    for unused in panels[len(setting.services) :]:
        unused.set_visible(False)
    panels[0].set_ylabel(QUANTITIES[what])
    if setting.sweep:
        panels[0].set_title(f"{setting.label}\n{setting.services[0]}")
