"""Curves of a quantity by round, for notebooks and scripts: the figure that ``Results.plot`` returns."""

import io
from collections.abc import Sequence
from operator import itemgetter
from textwrap import fill
from typing import Any

import numpy as np

from flmarket.analysis.figures.drawing import SETTINGS
from flmarket.analysis.figures.report_figures import (
    PANEL,
    accuracy_label,
    add_legend,
    draw_accuracy,
    draw_service,
    new_panels,
)
from flmarket.analysis.figures.styles import numbered
from flmarket.analysis.results.run_results import RunResult, by_setting, services_of
from flmarket.core.errors import InputError
from flmarket.core.names import unknown
from flmarket.core.text import counted

QUANTITIES = {
    "accuracy": "accuracy, %",
    "reward": "reward (Omega^accuracy)",
    "spent": "money spent",
    "wanted": "offers made",
    "served": "offers served",
    "refused": "offers refused",
}
"""The quantities that can be plotted, and the labels of their axes; that of accuracies also says what they come
from."""


def curves(runs: Sequence[RunResult], what: str, axes: Any = None) -> Any:
    """Return a figure of a quantity by round: a panel for each service of each scenario.

    The figure is not one of pyplot's: it leaves the caller's backend alone, is shown once by a notebook, and is saved
    with ``savefig``. Given ``axes``, one for each panel, are drawn on as they are, with neither our style nor a legend.
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
    shown = [(own, service) for own in settings.values() for service in services_of(own)]
    given = [] if axes is None else list(np.ravel(axes))
    if given and len(given) != len(shown):
        names = ", ".join(service for _, service in shown)
        raise InputError(f"ax: {counted(len(shown), 'panel')} ({names}) need as many axes, not {len(given)}")
    with mpl.rc_context({} if given else SETTINGS):
        figure, panels = (given[0].figure, given) if given else new_panels(len(shown), sharey=False, canvas=Picture)
        for panel, (own, service) in zip(panels, shown, strict=True):
            setting = own[0].setting
            if what == "accuracy":
                draw_accuracy(panel, service, own, styles)
            else:
                draw_service(panel, service, own, itemgetter(what), styles)
            if len(settings) > 1:
                panel.set_title(f"{fill(setting.label, PANEL)}\n{service}")
            panel.set_ylabel(accuracy_label(setting) if what == "accuracy" else QUANTITIES[what])
        if not given:
            add_legend(figure, styles)
    return figure
