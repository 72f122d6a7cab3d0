"""A scenario or a run in words and numbers, as the home screen previews it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import App
from textual.geometry import Size

from des.money import MICRO, to_micro
from fl.data.registry import info
from flmarket.core.counting import counted
from flmarket.core.errors import InputError
from scenarios.build import population_spec
from scenarios.file.checks import played as catalogue
from scenarios.file.keys import departures
from scenarios.file.schema import Scenario
from scenarios.file.toml_text import value_text
from scenarios.loader import ScenarioError, load, parse, points
from scenarios.logs.directory import SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.reading import FIGURES, LogError, some_rounds
from scenarios.logs.run_state import RunState
from tui.state.catalogue import Entry, age
from tui.state.run_standing import standing
from tui.state.training_log import TrainingFeed
from tui.style.colors import series_color, sign, tint
from tui.style.formats import blocks, percent, plain
from tui.style.market_words import accuracy_column
from tui.style.run_states import signed, state_style

ROOM = Size(40, 20)  # from which on there is a plot
POINTS = 120  # rounds that a curve is drawn through, about
SPARK = 24  # cells of a curve in a line
HINTS = {
    RunState.RUNNING: "It is being played; press enter to watch it.",
    RunState.INTERRUPTED: "Run it again to resume it from its last checkpoint.",
}

_OWN_SENTENCE = ("description", "interventions", "runs", "sweep")  # keys that the preview words by themselves


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of an entry: words, curves where there are any and there is room for them, and more words below."""

    words: RenderableType
    below: RenderableType = ""
    last: float = 0.0  # where the curves end, at most
    # of each its xs, its ys, its colour, its sign and its name
    curves: Sequence[tuple[Sequence[float], Sequence[float], str, str, str]] = ()


def preview(entry: Entry, app: App[object], room: Size) -> Preview:
    """Return the preview of an entry, in the colours of the app's theme."""
    plots = room.height >= ROOM.height and room.width >= ROOM.width
    try:
        return _preview(entry, app, plots)
    except (OSError, UnicodeError, RunDirectoryError, LogError) as error:
        return Preview(Text(f"{entry.path}: cannot be read: {error}", tint(app, "error")))


def _preview(entry: Entry, app: App[object], plots: bool) -> Preview:
    try:
        if entry.is_run:
            return _run_preview(entry.path, app, plots)
        if entry.kind == "training":
            return _training_preview(entry.path, app, plots)
        return Preview(scenario_preview(load(entry.path)), _numbered(entry.path, app))
    except ScenarioError as error:
        problems = Text("\n".join(map(str, error.problems)), tint(app, "error"))
        words = Group(Text(f"{entry.name} has problems:", "bold"), Text(), problems)
        return Preview(words, _numbered(entry.scenario_file, app))


def scenario_preview(scenario: Scenario) -> RenderableType:
    """Return a scenario in sentences, with a table of its services."""
    parts: list[RenderableType] = [Text(scenario.name, "bold")]
    if scenario.description:
        parts.append(Text(scenario.description, "italic"))
    parts += [Text(), *(Text(line) for line in story(scenario)), Text(), services_table(scenario)]
    return Group(*parts)


def _numbered(file: Path, app: App[object]) -> Text:
    """Return a scenario file with the numbers of its lines; comments are faint."""
    faint, shown = tint(app, "foreground", dim=True), Text("\n")
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        code, mark, comment = line.partition("# ") if line != "#" else ("", "#", "")
        shown.append(f"{number:4}  ", faint).append(code, "bold" if code.startswith("[") else "")
        shown.append(f"{mark}{comment}\n", faint)
    return shown


def story(scenario: Scenario) -> Iterator[str]:
    """Yield sentences that describe a scenario."""
    clients, services = scenario.clients, scenario.services
    yield (
        f"{counted(len(services), 'service')} compete{'s' * (len(services) == 1)} for "
        f"{counted(clients.count, 'client')} with {counted(clients.cores, 'core')} each, over at most "
        f"{counted(scenario.rounds, 'round')}."
    )
    holds = f"In each round a client has {min(clients.data_size)} to {max(clients.data_size)} images for each service"
    try:
        least, most = bid_range(scenario)
        yield f"{holds}, and asks {least:.2f} to {most:.2f} for training on them."
        if (middle := (least + most) / 2) > 0:
            budgets = sorted({service.budget for service in services})
            bought = " to ".join(f"{budget / middle:.0f}" for budget in dict.fromkeys((budgets[0], budgets[-1])))
            yield f"A budget buys about {bought} clients a round."
    except InputError:  # of a run that was played with a plug-in that is not loaded
        yield f"{holds}. What it asks is not known: the behaviour {clients.behaviour.kind} is not loaded here."
    if set_keys := [f"{key} = {value_text(value)}" for key, value in departures(scenario) if key not in _OWN_SENTENCE]:
        yield f"Set: {', '.join(set_keys)}."
    if scenario.interventions:
        changes = ", ".join(f"{c.key} = {value_text(c.value)} in round {c.round}" for c in scenario.interventions)
        yield f"Interventions: {changes}."
    if scenario.sweep or scenario.runs:
        swept = ", ".join(scenario.sweep or scenario.runs[0])
        yield f"{len(points(scenario))} scenarios, over {swept}."


def _most_labels(scenario: Scenario) -> int:
    """Return the labels of the data set that has most, of those that are known here; ten if none is."""
    found = []
    for service in scenario.services:
        with suppress(InputError):
            found.append(info(service.dataset).labels)
    return max(found, default=10)


def bid_range(scenario: Scenario) -> tuple[float, float]:
    """Return the lowest and the highest bid to any service, whatever the labels; money."""
    clients, behaviour = scenario.clients, population_spec(scenario).behaviour
    emds = clients.emds(_most_labels(scenario))
    size, emd = (np.array(found).ravel() for found in np.meshgrid(clients.data_size, emds))
    costs = [clients.cost.per_sample * size - clients.cost.per_emd * emd]
    if behaviour.misreports:
        size, emd = behaviour.report(size, emd, np.full(len(emd), 2.0))
        costs.append(clients.cost.per_sample * size - clients.cost.per_emd * emd)
    found, noise = np.concatenate(costs), clients.cost.noise
    ends = max(0.0, float(found.min())) * (1 - noise), float(found.max()) * (1 + noise)
    low, high = behaviour.bid_range(*(np.full(len(scenario.services), to_micro(cost), np.int64) for cost in ends))
    return float(low.min()) / MICRO, float(high.max()) / MICRO


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
    caption = Text("\nAUC of the evaluations, by episode" if plots and xs else "", faint)
    words = Group(Text(feed.name, "bold"), Text(episodes), Text(feed.what or "a training"), Text(), table, caption)
    curves = [(xs, ys, series_color(0, app), sign(0), feed.name)] if plots and xs else []
    return Preview(words, Text(str(log), faint), max([feed.total or 0, *xs]), curves)


def _run_preview(path: Path, app: App[object], plots: bool) -> Preview:
    run, faint = standing(path), tint(app, "foreground", dim=True)
    if run.state is RunState.WAITING:
        played = next(path.parents[1].glob(f"*/*/{SCENARIO}"), None)  # another run of the scenario, which has begun
        about = [] if played is None else map(Text, story(load(played, catalogue=catalogue())))
        return Preview(Group(Text(f"{signed(run.state)}: this run has not begun.\n"), *about))
    scenario = parse(RunDirectory(path).scenario_text(), str(path / SCENARIO), catalogue=catalogue())
    rounds = some_rounds(path, POINTS)
    xs = [float(one.number) for one in rounds]
    accuracies = np.array([one.figures[FIGURES.index("test_accuracy")] for one in rounds]).T
    lowest, highest = (float(end(accuracies)) for end in (np.min, np.max)) if rounds else (0.0, 1.0)
    column = accuracy_column(scenario)
    table = _table("#", "service", "policy", "status", f">{column}", "" if plots else "by round")
    for m, row in enumerate(rounds[-1].services if rounds else ()):
        places = np.linspace(0, len(xs) - 1, min(SPARK, len(xs))).round().astype(int)
        shares = (accuracies[m][places] - lowest) / ((highest - lowest) or 1.0)
        table.add_row(
            Text(sign(m), series_color(m, app)), plain(row.service), plain(row.policy), row.status.value,
            percent(row.test_accuracy), Text("" if plots else blocks(shares.tolist()), series_color(m, app)),
        )  # fmt: skip
    state = Text.assemble((signed(run.state), state_style(app, run.state)))
    state.append(f", {run.round} of {counted(scenario.rounds, 'round')}")
    state.append(f" · {run.policy} · seed {run.seed} · {age(time.time() - run.changed)}", faint)
    about = [Text(line) for line in (run.problem, HINTS.get(run.state, "")) if line]
    caption = Text(f"\n{column}, by round" if plots and rounds else "", faint)
    below = [Text(f"{scenario.description}\n", "italic"), *map(Text, story(scenario)), Text(str(path), faint)]
    curves = [
        (xs, (100 * accuracies[m]).tolist(), series_color(m, app), sign(m), service.name)
        for m, service in enumerate(scenario.services[: len(accuracies)])
        if plots
    ]
    last = run.round if run.state is RunState.COMPLETE else scenario.rounds
    return Preview(
        Group(Text(scenario.name, "bold"), state, *about, Text(), table, caption),
        Group(Text(), *below), max(10.0, last), curves,
    )  # fmt: skip
