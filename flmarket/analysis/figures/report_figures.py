"""Figures of a report, and that of ``Results.plot``."""

import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from operator import itemgetter
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from des.money import MICRO
from fl.arrays import FloatArray
from flmarket.analysis.figures.drawing import SETTINGS, Figure, Styles, colour, images, mark, numbered, style
from flmarket.analysis.results.measures import AUC
from flmarket.analysis.results.run_results import RunResult, by_policy, by_setting, services_of
from flmarket.analysis.results.setting import RunSetting
from flmarket.core.errors import InputError
from flmarket.core.names import unknown
from flmarket.core.text import counted
from flmarket.core.tracking import tracked
from learning.statistics.intervals import FEWEST, mean_band, mean_interval
from learning.statistics.measure import MARKET
from scenarios.file.differences import values_text

_MOST_POINTS = 2_000  # the most offers of a policy that a scatter plot shows; more only make it slow

_COLUMN, _PAGE = 3.5, 7.16  # widths in inches, as journals of two columns have them: figures are printed as they are
_PER_ROW = 4  # panels
_PANEL = 30  # letters that fit above a panel, or below it

_NO_LESS_THAN_ZERO, _PERCENT = (0.0, inf), (0.0, 100.0)  # limits of what curves show


def figures(
    runs: Sequence[RunResult],
    baseline: str | None = None,  # a policy that stands out even among many
    shown: Sequence[str] = (),  # only figures in whose names one of these stands; all if there is none
) -> list[Figure]:
    """Return the figures for which the runs have data. A policy looks the same in all of them."""
    drawable = list(_figures(runs, baseline))
    chosen = [it for it in drawable if not shown or any(text in it.name for text in shown)]
    if not chosen:
        names = ", ".join(it.name for it in drawable)
        raise InputError(f"{', '.join(shown)}: no figure is called so; choose from {names}")
    return chosen


def _figures(runs: Sequence[RunResult], baseline: str | None) -> Iterator[Figure]:
    settings, styles = by_setting(runs), numbered(runs, baseline)
    accuracy, reward, cost = (partial(draw, styles=styles) for draw in (_accuracy, _reward, _cost))
    for folder, members in settings.items():
        name, label, backend = folder.name, members[0].setting.label, members[0].setting.backend
        final = "final accuracy" if backend.trains else f"final {backend.accuracy}"
        for kind, caption, draw in (
            (
                "accuracy",
                f"{backend.accuracy} of each service by round; bands are 95 % intervals of the mean",
                accuracy,
            ),
            ("reward", "normalised reward (reward / Omega^target, mean over services) by round", reward),
            ("payments", "payments against bids, of served and of refused offers", _payments),
            ("allocation", "times that each client served each service, mean over seeds", _allocation),
            ("cost", f"{final} against money spent, each mark one run of one service", cost),
        ):
            yield Figure(f"{name}-{kind}", f"{label}: {caption}", lambda draw=draw, of=members: draw(of))  # type: ignore[misc]
    yield from _sweeps(list(settings.values()), styles)


def svgs(
    runs: Sequence[RunResult], baseline: str | None = None, shown: Sequence[str] = ()
) -> dict[str, tuple[str, str]]:
    """Return every figure's caption and SVG, by name."""
    drawn = tracked(figures(runs, baseline, shown), "figures")
    return {it.name: (it.caption, images(it, ["svg"])[0].decode()) for it in drawn}


def _new_panels(
    count: int, *, sharey: bool = True, height: float = 2.1, below: float = 0.5, canvas: Any = None
) -> tuple[Any, list[Any]]:
    """Return a figure and its panels: one as wide as a column of a journal, several as wide as its page.

    ``height`` is that of a panel, ``below`` what a legend takes, both in inches; ``canvas`` is the figure's class, if
    another than matplotlib's.
    """
    from matplotlib.figure import Figure as Canvas  # not pyplot's: nothing is global, and nothing has to be closed

    columns = min(count, _PER_ROW)
    rows = -(-count // columns)
    size = _COLUMN if count == 1 else _PAGE, height * rows + below
    figure = (canvas or Canvas)(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, sharey=sharey, squeeze=False)
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat[:count]


def _add_legend(figure: Any, styles: Styles) -> None:
    """Put the policies that stand out below the panels, where they cover nothing, and the number of the others."""
    handles: dict[str, Any] = {}
    for panel in figure.axes:
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    numbers = {policy: index for policy in handles if (index := styles[policy]) is not None}
    shown = {policy: handles[policy] for policy in sorted(numbers, key=numbers.__getitem__)}
    if others := [handle for policy, handle in handles.items() if policy not in shown]:
        shown[counted(len(others), "other")] = others[0]
    columns = 3 if figure.get_figwidth() < _PAGE else len(shown) if len(shown) < _PER_ROW + 3 else _PER_ROW
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns)


def _whole_ticks(axes: Any) -> None:
    axes.xaxis.get_major_locator().set_params(integer=True)


def _draw_service(
    axes: Any,
    service: str,
    runs: Sequence[RunResult],
    values: Callable[[RunResult], FloatArray],
    styles: Styles,
    limits: tuple[float, float] = _NO_LESS_THAN_ZERO,
) -> None:
    """Draw a service's values, of those [N, M] of all, by round: a curve for each policy."""
    for policy, members in by_policy(_having(service, runs)).items():
        _curves(axes, policy, styles[policy], np.array([values(run)[:, run.place(service)] for run in members]), limits)
    axes.set(title=service, xlabel="round")


def _having(service: str, runs: Sequence[RunResult]) -> list[RunResult]:
    return [run for run in runs if service in run.setting.services]


def _draw_accuracy(axes: Any, service: str, runs: Sequence[RunResult], styles: Styles) -> None:
    """Draw the accuracy of a service in %, and a line at its target."""
    _draw_service(axes, service, runs, lambda run: 100 * run["test_accuracy"], styles, _PERCENT)
    first = _having(service, runs)[0]
    axes.axhline(100 * first.setting.targets[first.place(service)], color="0.4", linewidth=0.8, linestyle=(0, (1, 3)))


def _accuracy_label(setting: RunSetting) -> str:
    """Return what an axis of a scenario's accuracies is called."""
    return f"{setting.backend.accuracy}, %"


def _curves(
    axes: Any,
    label: str,
    index: int | None,
    curves: FloatArray,
    limits: tuple[float, float] = _NO_LESS_THAN_ZERO,
) -> None:
    """Draw the mean of curves [seeds, N] by round and its 95 % band, in a policy's style; the others have no bands."""
    rounds = np.arange(1, curves.shape[1] + 1)
    mean, low, high = mean_band(curves, limits)
    axes.plot(rounds, mean, label=label, **style(index))
    _whole_ticks(axes)
    if len(curves) >= FEWEST and index is not None:
        axes.fill_between(rounds, low, high, color=colour(index), alpha=0.2, linewidth=0)


def _accuracy(runs: Sequence[RunResult], styles: Styles) -> Any:
    services = services_of(runs)
    figure, panels = _new_panels(len(services))
    for axes, service in zip(panels, services, strict=True):
        _draw_accuracy(axes, service, runs, styles)
    panels[0].set_ylabel(_accuracy_label(runs[0].setting))
    _add_legend(figure, styles)
    return figure


def _reward(runs: Sequence[RunResult], styles: Styles) -> Any:
    figure, [axes] = _new_panels(1, height=2.3)
    for policy, members in by_policy(runs).items():
        _curves(axes, policy, styles[policy], np.array([run.normalised_reward.mean(axis=1) for run in members]))
    axes.set(title="mean over services", xlabel="round", ylabel="reward / Omega^target")
    _add_legend(figure, styles)
    return figure


def _payments(runs: Sequence[RunResult]) -> Any:
    groups = by_policy(runs)
    figure, panels = _new_panels(len(groups))
    for axes, (policy, members) in zip(panels, groups.items(), strict=True):
        offers = pd.concat(run.offers for run in members)
        offers = offers.iloc[:: max(1, len(offers) // _MOST_POINTS)]
        served = offers["outcome"] == "served"
        for chosen, label, shape, tint in (
            (served, "served", "o", colour(0)),
            (~served, "refused", "x", colour(1)),
        ):
            part = offers[chosen]
            axes.scatter(
                part["bid"] / MICRO, part["payment"] / MICRO, s=10, marker=shape, color=tint, label=label, alpha=0.6,
                rasterized=True,  # tens of thousands of marks, of 150 bytes each as SVG
            )  # fmt: skip
        axes.axline((0, 0), slope=1, color="0.4", linewidth=0.8)
        axes.set(title=fill(policy, _PANEL), xlabel="bid, money")
    panels[0].set_ylabel("payment, money")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _allocation(runs: Sequence[RunResult]) -> Any:
    groups, services = by_policy(runs), services_of(runs)
    figure, panels = _new_panels(len(groups), sharey=False, height=0.75 + 0.15 * len(services), below=0.2)
    counts = [_served(members) for members in groups.values()]
    image = None
    for axes, policy, count in zip(panels, groups, counts, strict=True):
        top = max(float(np.max(counts)), 1.0)
        image = axes.imshow(count, aspect="auto", cmap="cividis", vmin=0, vmax=top, interpolation="nearest")
        axes.grid(visible=False)
        _whole_ticks(axes)
        names = groups[policy][0].setting.services
        axes.set(title=fill(policy, _PANEL), xlabel="client", yticks=range(len(names)), yticklabels=names)
    figure.colorbar(image, ax=panels, label="times served")
    return figure


def _served(runs: Sequence[RunResult]) -> FloatArray:
    """Return [M, C] how often each client served each service, mean over runs."""
    setting = runs[0].setting
    count = np.zeros((len(setting.services), setting.scenario.clients.count))
    for run in runs:
        np.add.at(count, (run.paying, run.earnings["client"]), 1)
    return count / len(runs)


def _cost(runs: Sequence[RunResult], styles: Styles) -> Any:
    services = services_of(runs)
    figure, panels = _new_panels(len(services))
    for axes, service in zip(panels, services, strict=True):
        for policy, members in by_policy(_having(service, runs)).items():
            index = styles[policy]
            axes.scatter(
                [run["spent"][:, run.place(service)].sum() for run in members],
                [100 * run["test_accuracy"][-1, run.place(service)] for run in members],
                color=colour(index),
                marker=mark(index),
                s=14,
                zorder=style(index)["zorder"],
                label=policy,
            )
        axes.set(title=service, xlabel="spent, money")
    panels[0].set_ylabel("final accuracy, %")
    _add_legend(figure, styles)
    return figure


def _sweeps(settings: Sequence[list[RunResult]], styles: Styles) -> Iterator[Figure]:
    """Yield a figure for each swept key with numbers and each point of the others: Figs. 3a and 3b of the paper."""
    points: dict[tuple[str, str, str], list[list[RunResult]]] = defaultdict(list)  # by family, key and the others
    for runs in settings:
        setting = runs[0].setting
        for key, value in setting.sweep.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                others = values_text({other: at for other, at in setting.sweep.items() if other != key})
                points[setting.family, key, others].append(runs)
    for name in dict.fromkeys(runs[0].setting.family for runs in settings if runs[0].setting.sweep):
        crossed = _crossed([run for members in settings if members[0].setting.family == name for run in members])
        if len(crossed) > 1:
            caption = f"{name}: AUC of the whole market at each value of a swept key, averaged over the other keys"
            yield Figure(f"{name}-sweep-effects", caption, lambda of=crossed: _effects(of, styles))  # type: ignore[misc]
    for (name, key, others), along in points.items():
        if len(along) > 1:
            at = f" ({others})" if others else ""
            caption = f"{name}{at}: normalised reward, mean over services and rounds, against {key}"
            place = re.sub(r"[^A-Za-z0-9._=-]+", "-", f"-{others}") if others else ""
            yield Figure(f"{name}-sweep-{key}{place}", caption, lambda key=key, of=along: _sweep(key, of, styles))  # type: ignore[misc]


def _crossed(runs: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """Return for each swept key the runs at those points of the others at which it has all of its values."""
    by_key = {}
    for key in dict.fromkeys(key for run in runs for key in run.setting.sweep):
        swept = [run for run in runs if key in run.setting.sweep]
        others = [values_text({it: at for it, at in run.setting.sweep.items() if it != key}) for run in swept]
        at: dict[str, set[str]] = defaultdict(set)
        for run, other in zip(swept, others, strict=True):
            at[repr(run.setting.sweep[key])].add(other)
        shared = set.intersection(*at.values())
        if len(at) > 1 and shared:
            by_key[key] = [run for run, other in zip(swept, others, strict=True) if other in shared]
    return by_key


def _effects(runs: Mapping[str, Sequence[RunResult]], styles: Styles) -> Any:
    figure, panels = _new_panels(len(runs))
    for axes, key in zip(panels, runs, strict=True):
        places: dict[str, int] = {}  # of the key's values, which are as far apart as they are many
        for policy, members in by_policy(runs[key]).items():
            scores: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))  # by value and seed
            for run in members:
                value = values_text({key: run.setting.sweep[key]}).removeprefix(f"{key}=")
                scores[value][run.seed].append(AUC.values(run)[MARKET])
            x = [places.setdefault(value, len(places)) for value in scores]
            intervals = [mean_interval([float(np.mean(it)) for it in by_seed.values()]) for by_seed in scores.values()]
            mean = np.array([it.estimate for it in intervals])
            spread = [mean - [it.low for it in intervals], [it.high for it in intervals] - mean]
            index = styles[policy]
            axes.errorbar(x, mean, spread, label=policy, marker=mark(index), capsize=3, **style(index))
        axes.set(
            xticks=list(places.values()),
            xticklabels=list(places),
            xlabel=key if len(key) <= _PANEL else key.replace(".", ".\n"),
        )
        if sum(map(len, places)) > _PANEL:  # labels that would run into each other
            axes.set_xticks(list(places.values()), list(places), rotation=30, ha="right")
    panels[0].set_ylabel("AUC, %")
    _add_legend(figure, styles)
    return figure


def _sweep(key: str, points: Sequence[list[RunResult]], styles: Styles) -> Any:
    figure, [axes] = _new_panels(1, height=2.3)
    for policy in dict.fromkeys(run.policy for runs in points for run in runs):
        index, marks = styles[policy], []
        for runs in points:
            scores = np.array([run.normalised_reward.mean(axis=1).mean() for run in runs if run.policy == policy])
            if len(scores):
                interval = mean_interval(scores)
                marks.append((runs[0].setting.sweep[key], interval.estimate, interval.low, interval.high))
        x, mean, low, high = np.array(sorted(marks)).T
        spread = [mean - low, high - mean]
        axes.errorbar(x, mean, spread, label=policy, marker=mark(index), capsize=3, **style(index))
    if all(isinstance(runs[0].setting.sweep[key], int) for runs in points):
        _whole_ticks(axes)
    axes.set(title="mean over services and rounds", xlabel=key, ylabel="reward / Omega^target")
    _add_legend(figure, styles)
    return figure


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
    shown = [(members, service) for members in settings.values() for service in services_of(members)]
    places = [] if axes is None else list(np.ravel(axes))
    if places and len(places) != len(shown):
        names = ", ".join(service for _, service in shown)
        raise InputError(f"ax: {counted(len(shown), 'panel')} ({names}) need as many axes, not {len(places)}")
    with mpl.rc_context({} if places else SETTINGS):
        figure, panels = (places[0].figure, places) if places else _new_panels(len(shown), sharey=False, canvas=Picture)
        for panel, (members, service) in zip(panels, shown, strict=True):
            setting = members[0].setting
            if what == "accuracy":
                _draw_accuracy(panel, service, members, styles)
            else:
                _draw_service(panel, service, members, itemgetter(what), styles)
            if len(settings) > 1:
                panel.set_title(f"{fill(setting.label, _PANEL)}\n{service}")
            panel.set_ylabel(_accuracy_label(setting) if what == "accuracy" else QUANTITIES[what])
        if not places:
            _add_legend(figure, styles)
    return figure
