"""``flmarket validate``: every problem of the files it is given, or one line for each that has none."""

from dataclasses import replace

import typer

from fl.counting import counted
from tui.commands.arguments import Assignments, Plugins, Sources, load_all, load_plugins


def validate(sources: Sources, assignments: Assignments = None, plugin: Plugins = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    from scenarios.file.checks import installed
    from scenarios.loader import points
    from scenarios.trial import obstacles

    load_plugins(plugin)
    scenarios = load_all(sources, assignments or [], catalogue=replace(installed(), obstacles=obstacles))

    for source, scenario in zip(sources, scenarios, strict=True):
        services, count = len(scenario.services), len(points(scenario))
        sweep = f", a sweep of {counted(count, 'point')}" if count > 1 else ""
        counts = f"{counted(services, 'service')}, {counted(scenario.rounds, 'round')}"
        typer.echo(f"{source}: valid: {scenario.name}, {counts}{sweep}")
