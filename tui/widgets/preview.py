"""A scenario or a run in words and numbers, as the home screen previews it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.app import App

from des.money import MICRO, to_micro
from fl.data.registry import info
from flmarket.core.counting import counted
from flmarket.core.errors import InputError
from scenarios.build import population_spec
from scenarios.file.checks import played
from scenarios.file.keys import departures
from scenarios.file.schema import Scenario
from scenarios.file.toml_text import value_text
from scenarios.loader import ScenarioError, load, parse, points
from scenarios.logs.directory import SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.reading import LogError, last_services
from tui.state.catalogue import Entry
from tui.state.run_standing import state_of
from tui.state.training_log import TrainingFeed
from tui.style.colors import sign, tint
from tui.style.formats import percent, plain
from tui.style.market_words import accuracy_column

_OWN_SENTENCE = ("description", "interventions", "runs", "sweep")  # keys that the preview words by themselves


def preview(entry: Entry, app: App[object]) -> RenderableType:
    """Return the preview of an entry, in the colours of the app's theme."""
    try:
        if entry.is_run:
            return _run_preview(entry, tint(app, "foreground", dim=True))
        if entry.kind == "training":
            return _training_preview(entry.path, tint(app, "foreground", dim=True))
        return scenario_preview(load(entry.path))
    except ScenarioError as error:
        problems = Text("\n".join(map(str, error.problems)), tint(app, "error"))
        return Group(Text(f"{entry.name} has problems:", "bold"), Text(), problems)
    except (OSError, UnicodeError, RunDirectoryError, LogError) as error:
        return Text(f"{entry.path}: cannot be read: {error}", tint(app, "error"))


def scenario_preview(scenario: Scenario) -> RenderableType:
    """Return a scenario in sentences, with a table of its services."""
    parts: list[RenderableType] = [Text(scenario.name, "bold")]
    if scenario.description:
        parts.append(Text(scenario.description, "italic"))
    parts += [Text(), *(Text(line) for line in story(scenario)), Text(), services_table(scenario)]
    return Group(*parts)


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
    table = Table("#", "service", "data set", "budget", "target %", "policy", box=None, pad_edge=False)
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


def _training_preview(log: Path, faint: Style) -> RenderableType:
    feed = TrainingFeed(log)
    feed.look()
    episodes = f"{feed.state}, {len(feed.episodes)} of {'?' if feed.total is None else feed.total} episodes"
    table = Table("", "AUC", "reward", box=None, pad_edge=False)
    newest = {"last evaluation": feed.evaluations[-1].values} if feed.evaluations else {}
    for name, values in {**newest, **feed.baselines}.items():
        table.add_row(plain(name), *(f"{values[metric]:.4f}" for metric in ("auc", "reward") if metric in values))
    what = Text(feed.what or "a training")
    return Group(Text(feed.name, "bold"), Text(episodes, "italic"), Text(str(log), faint), Text(), what, Text(), table)


def _run_preview(entry: Entry, faint: Style) -> RenderableType:
    state = state_of(entry.path)
    scenario = parse(RunDirectory(entry.path).scenario_text(), str(entry.path / SCENARIO), catalogue=played())
    number, rows = last_services(entry.path)
    rounds = f"{number} of {counted(scenario.rounds, 'round')}"
    words = f"{state}, {rounds}, policy {entry.path.parent.name}, {entry.path.name}"
    table = Table("#", "service", "status", accuracy_column(scenario), "spent last", box=None, pad_edge=False)
    for m, row in enumerate(rows):
        table.add_row(
            sign(m), plain(row.service), row.status.value, percent(row.test_accuracy), f"{row.spent / MICRO:.2f}",
        )  # fmt: skip
    return Group(
        Text(scenario.name, "bold"), Text(words, "italic"), Text(str(entry.path), faint), Text(), table, Text(),
        *(Text(line) for line in story(scenario)),
    )  # fmt: skip
