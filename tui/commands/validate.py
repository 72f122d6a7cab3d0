"""``flmarket validate``: every problem of the files it is given, or one line for each that has none."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from fl.counting import counted
from tui.commands.arguments import Assignments, Plugins, Sources, load_all, load_plugins
from tui.commands.console import note, result


def validate(sources: Sources, assignments: Assignments = None, plugin: Plugins = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    from fl.datasets import load
    from scenarios.build import Shelf
    from scenarios.file.checks import installed
    from scenarios.loader import points
    from scenarios.trial import absent, obstacles

    _rehearse(sources, assignments or [], plugin)
    shelf = Shelf(partial(load, download=False))
    catalogue = replace(installed(), obstacles=partial(obstacles, shelf))
    scenarios = load_all(sources, assignments or [], catalogue=catalogue)

    for source, scenario in zip(sources, scenarios, strict=True):
        services, count = len(scenario.services), len(points(scenario))
        sweep = f", a sweep of {counted(count, 'point')}" if count > 1 else ""
        counts = f"{counted(services, 'service')}, {counted(scenario.rounds, 'round')}"
        result(f"{source}: valid: {scenario.name}, {counts}{sweep}")
    markets = [point.scenario for scenario in scenarios for point in points(scenario)]
    for name in dict.fromkeys(name for market in markets for name in absent(market, shelf)):
        note(f"note: data set {name!r} is not here; flmarket run downloads it first")


def _rehearse(sources: list[str], assignments: list[str], plugin: Plugins) -> None:
    """Load plug-ins; let another process create what the scenarios name first, in case that ends or hangs a process."""
    from scenarios.plugins import any_foreign

    if not plugin and not any_foreign():
        return
    from scenarios.loader import ScenarioError, points
    from scenarios.running.rehearsal import Rehearsal

    with Rehearsal() as rehearsal:
        load_plugins(plugin, rehearsal)
        for source in sources:
            with suppress(ScenarioError):  # reported with the problems of the other files
                (scenario,) = load_all([source], assignments)
                markets = [point.scenario for point in points(scenario)]
                rehearsal.policies((it.policy, it.checkpoint) for market in markets for it in market.services)
                for market in markets:
                    rehearsal.create(market)
