"""Curves of a quantity by round, for notebooks and scripts: the figure that ``Results.plot`` returns."""

import io
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from flmarket.analysis.figures.drawing import SETTINGS
from flmarket.analysis.figures.report_figures import accuracy_label, draw_accuracy, draw_service
from flmarket.analysis.figures.styles import Styles, numbered
from flmarket.analysis.results.run_results import RunResult, by_setting
from flmarket.analysis.results.setting import Setting
from flmarket.core.errors import InputError
from flmarket.core.names import unknown

QUANTITIES = {
    "accuracy": "accuracy, %",
    "reward": "reward (Omega^accuracy)",
    "spent": "money spent",
    "wanted": "offers made",
    "served": "offers served",
    "refused": "offers refused",
}
"""What can be plotted, and the label of its axis; that of accuracies also says what they come from."""


_COLUMNS = 4  # panels in a row, at most


def curves(runs: Sequence[RunResult], what: str) -> Any:
    """Return a figure of a quantity by round: a panel for each service, each scenario's from a new row on.

    The figure is not one of pyplot's: it leaves the caller's backend alone, is shown once by a notebook, and is saved
    with ``savefig``.
    """
    if what not in QUANTITIES:
        raise InputError(unknown("quantity", what, QUANTITIES))
    import matplotlib as mpl
    from matplotlib.figure import Figure

    class Picture(Figure):
        """Shows itself in notebooks, without pyplot."""

        def _repr_png_(self) -> bytes:
            target = io.BytesIO()
            self.savefig(target, format="png", dpi=100)
            return target.getvalue()

    settings, styles = by_setting(runs), numbered(runs)
    panels = [(own, m) for own in settings.values() for m in _places(own[0].setting, columns=_COLUMNS)]
    columns = min(_COLUMNS, max(len(own[0].setting.services) for own in settings.values()))
    rows = len(panels) // _COLUMNS
    with mpl.rc_context(SETTINGS):
        figure = Picture(figsize=(3.2 * columns, 2.6 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, sharey="row", squeeze=False)
        for place, (own, m) in enumerate(panels):
            row, column = divmod(place, _COLUMNS)
            if m is not None:
                _panel(axes[row, column], own, m, what, styles, label=column == 0, head=len(settings) > 1 and m == 0)
            elif column < columns:
                axes[row, column].set_visible(False)
        handles = {
            label: line for panel in axes.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        policies = sorted(handles, key=lambda policy: styles[policy])
        figure.legend([handles[policy] for policy in policies], policies, loc="outside lower center", ncols=6)
    return figure


def _places(setting: Setting, columns: int) -> list[int | None]:
    """Return the services of a scenario, by index, filled up to whole rows of panels."""
    count = len(setting.services)
    return [*range(count), *[None] * (-count % columns)]


def _panel(axes: Any, runs: Sequence[RunResult], m: int, what: str, styles: Styles, *, label: bool, head: bool) -> None:
    """Draw one service's curves; ``label`` the axis, and name the scenario as well (``head``)."""
    setting = runs[0].setting
    if what == "accuracy":
        draw_accuracy(axes, m, runs, styles)
    else:
        draw_service(axes, m, runs, itemgetter(what), styles)
    if head:
        axes.set_title(f"{setting.label}\n{setting.services[m]}")
    if label:
        axes.set_ylabel(accuracy_label(setting) if what == "accuracy" else QUANTITIES[what])
