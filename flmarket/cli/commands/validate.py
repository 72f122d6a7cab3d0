"""``flmarket validate``: every problem of the files it is given, or one line for each that has none."""

from dataclasses import replace
from functools import partial

from fl.data.registry import load
from flmarket.cli.arguments import Assignments, Plugins, Sources, load_plugins
from flmarket.cli.console import note, result
from flmarket.cli.loading import load_all
from flmarket.core.text import counted
from scenarios.build import Shelf, recorded_of
from scenarios.file.checks import installed
from scenarios.loader import points, regimes_of
from scenarios.playable import absent, obstacles, oddities


def validate(sources: Sources, assignments: Assignments = None, plugin: Plugins = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    shelf = Shelf(partial(load, download=False))
    load_plugins(plugin)
    catalogue = replace(installed(), own_policies=True, obstacles=partial(obstacles, shelf))
    scenarios = load_all(sources, assignments or [], catalogue=catalogue)

    played = [[point.scenario for point in points(scenario)] for scenario in scenarios]
    missing = dict.fromkeys(name for markets in played for market in markets for name in absent(market, shelf))
    for source, scenario, markets in zip(sources, scenarios, played, strict=True):
        services, count = len(scenario.services), len(markets)
        sweep = f", a sweep of {counted(count, 'point')}" if count > 1 else ""
        counts = f"{counted(services, 'service')}, {counted(scenario.rounds, 'round')}"
        result(f"{source}: valid: {scenario.name}, {counts}{sweep}")
        for chosen in regimes_of(markets):
            result(f"  {chosen}")
        for rule in dict.fromkeys(str(it.training.aggregation) for it in markets if it.training.aggregation.given):
            result(f"  aggregation: {rule}")
        for name in sorted({name for market in markets for name in recorded_of(market)} - {*missing}):
            result(f"  {name}: {shelf.get(name).sizes}")
    for text in dict.fromkeys(text for markets in played for market in markets for text in oddities(market)):
        note(f"note: {text}")
    for name in missing:
        note(f"note: data set {name!r} is not here; flmarket run downloads it first")
