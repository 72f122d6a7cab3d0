"""A scenario or a run in words and numbers, as the home screen previews it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import App
from textual.geometry import Size

from flmarket.core.errors import InputError
from flmarket.core.text import counted
from scenarios.file.checks import played as catalogue
from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, load, parse
from scenarios.logs.directory import SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.reading import FIGURES, LogError, RunReader
from scenarios.logs.run_state import RunState
from tui.state.catalogue import Entry, age, read_scenario
from tui.state.run_standing import standing
from tui.state.training_log import TrainingFeed
from tui.style.colors import series_color, sign, signed, state_style, tint
from tui.style.formats import blocks, percent, plain
from tui.style.sentences import accuracy_column, story
from tui.widgets.plot import Plot

ROOM = Size(40, 20)  # from which on there is a plot
POINTS = 120  # rounds that a curve is drawn through, about
SPARK = 24  # cells of a curve in a line
HINTS = {
    RunState.RUNNING: "It is being played; press enter to watch it.",
    RunState.INTERRUPTED: "Run it again to resume it from its last checkpoint.",
}


@dataclass(frozen=True, slots=True)
class Preview:
    """An entry as it is shown: words, curves where there are any and there is room for them, and more words."""

    words: RenderableType
    below: RenderableType = ""
    last: float = 0.0  # where the curves end, at most
    # of each its xs, its ys, its colour, its sign and its name
    curves: Sequence[tuple[Sequence[float], Sequence[float], str, str, str]] = ()

    def plot(self, before: Plot | None) -> Plot | None:
        """Return a plot of the curves: the one before, hidden where there are none, or a new one where there are."""
        if before is None and not self.curves:
            return None
        plot = before or Plot()
        plot.display = bool(self.curves)
        plot.begin(self.last)
        for curve in self.curves:
            plot.curve(*curve)
        return plot


def preview(entry: Entry, app: App[object], room: Size) -> Preview:
    """Return the preview of an entry, in the colours of the app's theme."""
    plots = room.height >= ROOM.height and room.width >= ROOM.width
    try:
        return _preview(entry, app, plots)
    except (OSError, UnicodeError, RunDirectoryError, LogError) as error:
        return Preview(Text(f"{entry.path}: cannot be read: {error}", tint(app, "error")))
    except InputError as error:
        return Preview(Text(str(error), tint(app, "error")))


def _preview(entry: Entry, app: App[object], plots: bool) -> Preview:
    try:
        if entry.is_run:
            return _run_preview(entry, app, plots)
        if entry.kind == "training":
            return _training_preview(entry.path, app, plots)
        return Preview(scenario_preview(load(entry.path)), numbered(read_scenario(entry.path), app))
    except ScenarioError as error:
        problems = Text("\n".join(map(str, error.problems)), tint(app, "error"))
        words = Group(Text(f"{entry.name} has problems:", "bold"), Text(), problems)
        return Preview(words, numbered(read_scenario(entry.scenario_file), app))


def scenario_preview(scenario: Scenario) -> RenderableType:
    """Return a scenario in sentences, with a table of its services."""
    parts: list[RenderableType] = [Text(scenario.name, "bold")]
    if scenario.description:
        parts.append(Text(scenario.description, "italic"))
    parts += [Text(), *(Text(line) for line in story(scenario)), Text(), services_table(scenario)]
    return Group(*parts)


def numbered(text: str, app: App[object]) -> Text:
    """Return a scenario file's text with the numbers of its lines; comments are faint."""
    faint, shown = tint(app, "foreground", dim=True), Text("\n")
    for number, line in enumerate(text.splitlines(), 1):
        code, mark, comment = line.partition("# ") if line != "#" else ("", "#", "")
        shown.append(f"{number:4}  ", faint).append(code, "bold" if code.startswith("[") else "")
        shown.append(f"{mark}{comment}\n", faint)
    return shown


def services_table(scenario: Scenario) -> Table:
    table = _table("#", "service", "data set", ">budget", ">target %", "policy")
    for m, service in enumerate(scenario.services):
        table.add_row(
            sign(m),
            plain(service.name),
            plain(service.dataset),
            f"{service.budget:g}",
            percent(service.target_accuracy),
            plain(service.policy),
        )
    return table


def _table(*titles: str) -> Table:
    """Return an empty table; the columns whose titles begin with ``>`` are of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title.lstrip(">"), justify="right" if title.startswith(">") else "left")
    return table


def _training_preview(log: Path, app: App[object], plots: bool) -> Preview:
    feed, faint = TrainingFeed(log), tint(app, "foreground", dim=True)
    feed.look()
    episodes = f"{feed.state}, {len(feed.episodes)} of {'?' if feed.total is None else feed.total} episodes"
    table = _table("", ">AUC", ">reward")
    newest = {"last evaluation": feed.evaluations[-1].values} if feed.evaluations else {}
    for name, values in {**newest, **feed.baselines}.items():
        table.add_row(plain(name), *(f"{values[metric]:.4f}" for metric in ("auc", "reward") if metric in values))
    xs = [float(point.episode) for point in feed.evaluations]
    ys = [point.values["auc"] for point in feed.evaluations]
    caption = [Text("\nAUC of the evaluations, by episode", faint)] if plots and xs else []
    words = Group(Text(feed.name, "bold"), Text(episodes), Text(feed.what or "a training"), Text(), table, *caption)
    curves = [(xs, ys, series_color(0, app), sign(0), feed.name)] if plots and xs else []
    return Preview(words, Text(str(log), faint), max([feed.total or 0, *xs]), curves)


def _run_preview(entry: Entry, app: App[object], plots: bool) -> Preview:
    path = entry.path
    if not path.is_dir():
        return Preview(Text(f"{signed(RunState.GONE)}: {path} has been removed.", tint(app, "error")))
    run, faint = standing(path), tint(app, "foreground", dim=True)
    if entry.state:  # which is that of its line: one that is open may be paused
        run = replace(run, state=RunState(entry.state))
    if run.state is RunState.WAITING:
        played = next(path.parents[1].glob(f"*/*/{SCENARIO}"), None)  # another run of the scenario, which has begun
        about = [] if played is None else map(Text, story(load(played, catalogue=catalogue())))
        return Preview(Group(Text(f"{signed(run.state)}: this run has not begun.\n"), *about))
    scenario = parse(RunDirectory(path).scenario_text(), str(path / SCENARIO), catalogue=catalogue())
    rounds = RunReader(path).some(POINTS)
    xs = [float(one.number) for one in rounds]
    accuracies = np.array([one.figures[FIGURES.index("test_accuracy")] for one in rounds]).T
    lowest, highest = (float(end(accuracies)) for end in (np.min, np.max)) if rounds else (0.0, 1.0)
    column = accuracy_column(scenario)
    table = _table("#", "service", "policy", "target", f">{column}", "" if plots else "by round")
    for m, row in enumerate(rounds[-1].services if rounds else ()):
        places = np.linspace(0, len(xs) - 1, min(SPARK, len(xs))).round().astype(int)
        shares = (accuracies[m][places] - lowest) / ((highest - lowest) or 1.0)
        table.add_row(
            Text(sign(m), series_color(m, app)), plain(row.service), plain(row.policy),
            "met" if row.status.gone else "not met",
            percent(row.test_accuracy), Text("" if plots else blocks(shares.tolist()), series_color(m, app)),
        )  # fmt: skip
    state = Text.assemble((signed(run.state), state_style(app, run.state)))
    state.append(f", {run.round} of {counted(scenario.rounds, 'round')}")
    state.append(f" · {run.policy} · seed {run.seed} · {age(time.time() - run.changed)}", faint)
    about = [Text(line) for line in (run.problem, HINTS.get(run.state, "")) if line]
    caption = [Text(f"\n{column}, by round", faint)] if plots and rounds else []
    below = [Text(f"{scenario.description}\n", "italic"), *map(Text, story(scenario)), Text(str(path), faint)]
    curves = [
        (xs, (100 * accuracies[m]).tolist(), series_color(m, app), sign(m), service.name)
        for m, service in enumerate(scenario.services[: len(accuracies)])
        if plots
    ]
    last = run.round if run.state is RunState.COMPLETE else scenario.rounds
    return Preview(
        Group(Text(entry.name.partition(" · ")[0], "bold"), state, *about, Text(), table, *caption),
        Group(Text(), *below), max(10.0, last), curves,
    )  # fmt: skip
