"""A scenario in sentences, the meanings of its values, market events in words, and what accuracies are called."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from des.log_records import Kind, MarketEvent
from des.money import MICRO
from fl.backends import BACKENDS
from fl.data.registry import DATASETS
from fl.training.models import MODELS
from flmarket.core.errors import InputError
from flmarket.core.plugins import summary
from flmarket.core.text import counted
from scenarios.build import bid_range, population_spec
from scenarios.file.keys import departures, keys, schema_at, value_at
from scenarios.file.problems import NAMED, Path
from scenarios.file.schema import REGISTRIES, Scenario
from scenarios.file.toml import value_text
from scenarios.loader import points
from scenarios.logs.reading import STALENESS
from tui.style.formats import percent, seconds

Meanings = Mapping[Path, str]  # of values, by where they stand

# keys that the preview words by themselves
_OWN_SENTENCE = ("description", "clients.data_size", "clients.groups", "interventions", "runs", "sweep")


def story(scenario: Scenario) -> Iterator[str]:
    """Yield sentences that describe a scenario."""
    clients, services = scenario.clients, scenario.services
    each = "at most " * (clients.all_cores < clients.count * clients.cores) + counted(clients.cores, "core")
    yield (
        f"{counted(len(services), 'service')} compete{'s' * (len(services) == 1)} for "
        f"{counted(clients.count, 'client')} with {each} each, over at most "
        f"{counted(scenario.rounds, 'round')}."
    )
    try:
        sizes, (least, most) = _sizes(scenario), bid_range(scenario)
        yield (
            f"In each round a client has {min(sizes):,} to {max(sizes):,} images for each service, and asks "
            f"{least:.2f} to {most:.2f} for training on them."
        )
        if (middle := (least + most) / 2) > 0:
            budgets = sorted({service.budget for service in services})
            bought = " to ".join(f"{budget / middle:.0f}" for budget in dict.fromkeys((budgets[0], budgets[-1])))
            yield f"A budget buys about {bought} clients a round."
    except InputError as error:  # of a run that was played with a plug-in that is not loaded, or a file that has gone
        yield f"What clients have and ask is not known here: {error}."
    if set_keys := [f"{key} = {value_text(value)}" for key, value in departures(scenario) if key not in _OWN_SENTENCE]:
        yield f"Set: {', '.join(set_keys)}."
    if clients.groups:
        yield f"Groups of clients: {', '.join(group.name for group in clients.groups)}."
    if scenario.interventions:
        changes = ", ".join(f"{c.key} = {value_text(c.value)} in round {c.round}" for c in scenario.interventions)
        yield f"Interventions: {changes}."
    if scenario.sweep or scenario.runs:
        swept = ", ".join(scenario.sweep or scenario.runs[0])
        yield f"{len(points(scenario))} scenarios, over {swept}."


def _sizes(scenario: Scenario) -> list[int]:
    return [size for group in population_spec(scenario).groups for size in group.data_sizes]


def meanings(scenario: Scenario) -> Meanings:
    """Return what values of a scenario come to in its market, for those of which that is known before it is played."""
    clients, services, timeline = scenario.clients, scenario.services, scenario.timeline
    jobs = f"at most {counted(clients.all_cores, 'job')} a round, for {counted(len(services), 'service')}"
    words: dict[Path, str] = {("clients", "count"): jobs, ("clients", "cores"): jobs}
    least, most = bid_range(scenario)
    asked = f"a client asks a service {least:.2f} to {most:.2f} a round"
    words |= dict.fromkeys(
        [("clients", "data_size"), ("clients", "cost", "per_sample"), ("clients", "cost", "per_emd")], asked
    )
    sizes = _sizes(scenario)
    times = [timeline.seconds_per_sample * size for size in (min(sizes), max(sizes))]
    words["timeline", "seconds_per_sample"] = (
        f"a client of speed 1 trains {' to '.join(map(seconds, times))} in each epoch"
    )
    for m, service in enumerate(services):
        of = ("services", m)
        if most > 0:
            middle = service.budget / ((least + most) / 2)
            words[*of, "budget"] = f"buys about {counted(round(middle), 'client')} a round"
        if service.total_budget is not None and service.budget:
            lasts = service.total_budget / service.budget
            words[*of, "total_budget"] = f"lasts {counted(int(lasts), 'round')} in which the whole budget is spent"
        if service.arrival > 1:
            words[*of, "arrival"] = f"{counted(max(0, scenario.rounds - service.arrival + 1), 'round')} are left then"
        reward = service.reward_base**service.target_accuracy
        words[*of, "reward_base"] = f"{reward:.1f} a round from the target of {percent(service.target_accuracy)} % on"
    return words


WITH_TORCH = {
    "mahdrl-paper": "learned: the paper's Algorithm 1, as we read it; plays only the services that it was trained for"
}
"""What policies are that bring torch when they are loaded, which takes seconds and 150 MB. They have no options."""


def plugin_words(kind: str, name: str, table: Path | None = None) -> tuple[str, str]:
    """Return what a plug-in is, in a line, and its options with their defaults; empty texts where none is known.

    Options that are keys of the table are left out. The plug-in is loaded, which may take a while.
    """
    registry = next(one for one in REGISTRIES if one.kind == kind)
    if kind == "policy" and name in WITH_TORCH:
        return WITH_TORCH[name], ""
    try:
        words = summary(registry.load(name))
        if registry in (DATASETS, MODELS):  # which take none
            return words, ""
        options = [f"{option} (required)" for option, _ in registry.wrong_options(name, {})]
        options += [
            f"{option} = {'none' if value is None else value_text(value)}"
            for option, value in registry.defaults(name).items()
        ]
    except (InputError, ImportError):  # it is not there, or something that it needs is not
        return "", ""
    if table is not None:
        options = [option for option in options if schema_at((*table, option.split()[0])) is None]
    return words, ", ".join(options)


def plugin_meanings(data: Mapping[str, Any]) -> Meanings:
    """Return what the plug-ins are that a scenario names, valid or not, and which options they take."""
    words: dict[Path, str] = {}
    lists = {path: value_at(data, path) for path in NAMED}
    places = [(*path, m) for path, them in lists.items() if isinstance(them, list) for m in range(len(them))]
    for table in ((), *places):
        for key in keys(table):
            if key.names is not None:
                *above, name = path = (*table, *key.path)
                chosen = str(value_at(data, path) or key.default)
                words[path], options = plugin_words(key.names, chosen, tuple(above))
                label = "policy_options" if name == "policy" else "options"
                if words[path] and schema_at((*above, label)) is not None:
                    words[*above, label] = f"{chosen}: {options or 'takes no options'}"
    return words


CURVES = {
    "reward": "reward per round",
    "spent": "money spent per round",
    "mean_payment": "mean price of a client",
    STALENESS: "mean staleness of the updates in each round's models",
}
"""Titles of the curves, but for that of accuracies."""


def accuracy_words(scenarios: Iterable[Scenario | None]) -> str:
    """Return what the accuracies that scenarios report are, as reports name them; None is one that is not known yet."""
    kinds = {BACKENDS[scenario.training.backend].accuracy for scenario in scenarios if scenario is not None}
    return kinds.pop() if len(kinds) == 1 else "accuracy"


def accuracy_column(scenario: Scenario | None) -> str:
    """Return the title of a column with a scenario's reported accuracies: only networks are tested on images."""
    trains = scenario is not None and BACKENDS[scenario.training.backend].trains
    return "test accuracy %" if trains else "accuracy %"


def event_words(event: MarketEvent) -> str:
    """Return a sentence that describes an event."""
    amount = event.amount or 0
    money = f"{amount / MICRO:.2f}"
    match event.event:
        case Kind.REFRESH:
            return "all clients refresh their data"
        case Kind.BID:
            return f"{event.service} has all bids; the lowest is {money}"
        case Kind.DECISION:
            return f"{event.service} offers {money} in total"
        case Kind.AWARD:
            return f"client {event.client} gives {event.service} core {event.core} for {money}"
        case Kind.TRAIN_START:
            return f"client {event.client} starts training for {event.service} on core {event.core}"
        case Kind.TRAIN_END:
            return f"client {event.client} has trained for {event.service}"
        case Kind.UPLOAD:
            return f"client {event.client} has sent its update to {event.service}"
        case Kind.AGGREGATE:
            return f"{event.service} averages updates from {amount:g} images"
        case Kind.EVALUATE:
            return f"{event.service} now has an accuracy of {percent(float(amount))} %"
        case Kind.PAY:
            return f"{event.service} pays client {event.client} {money}"
        case Kind.EXIT:
            return f"{event.service} leaves with an accuracy of {percent(float(amount))} %"
        case Kind.CANCEL:
            return f"{event.service} pays client {event.client} {money} for the end of its contract"
