"""``flmarket validate``: every problem of the files it is given, or one line for each that has none."""

from functools import partial

from fl.data.registry import load
from flmarket.cli.arguments import Assignments, Plugins, Sources, load_plugins
from flmarket.cli.console import note, result
from flmarket.cli.loading import load_all
from flmarket.core.text import counted
from scenarios.build import Shelf, recorded_of
from scenarios.loader import points, regimes_of
from scenarios.playable import absent, remarks, validation


def validate(sources: Sources, assignments: Assignments = None, plugin: Plugins = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    shelf = Shelf(partial(load, download=False))
    load_plugins(plugin)
    scenarios = load_all(sources, assignments or [], catalogue=validation(shelf))

    played = [[point.scenario for point in points(scenario)] for scenario in scenarios]
    every = [market for markets in played for market in markets]
    missing = {name for market in every for name in absent(market, shelf)}
    for source, scenario, markets in zip(sources, scenarios, played, strict=True):
        services, count = len(scenario.services), len(markets)
        sweep = f", a sweep of {counted(count, 'point')}" if count > 1 else ""
        counts = f"{counted(services, 'service')}, {counted(scenario.rounds, 'round')}"
        result(f"{source}: valid: {scenario.name}, {counts}{sweep}")
        for chosen in regimes_of(markets):
            result(f"  {chosen}")
        for rule in dict.fromkeys(str(it.training.aggregation) for it in markets if it.training.aggregation.given):
            result(f"  aggregation: {rule}")
        for name in sorted({name for market in markets for name in recorded_of(market)} - missing):
            result(f"  {name}: {shelf.get(name).sizes}")
    for text in remarks(every, shelf):
        note(f"note: {text}")
