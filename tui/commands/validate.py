"""``flmarket validate``: every problem of the files it is given, or one line for each that has none."""

from dataclasses import replace

from tui.commands.arguments import Assignments, Plugins, Sources, load_all, load_plugins
from tui.commands.console import result


def validate(sources: Sources, assignments: Assignments = None, plugin: Plugins = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    from scenarios.file.checks import installed
    from scenarios.loader import points
    from scenarios.trial import obstacles

    load_plugins(plugin)
    scenarios = load_all(sources, assignments or [], catalogue=replace(installed(), obstacles=obstacles))

    for source, scenario in zip(sources, scenarios, strict=True):
        services, count = len(scenario.services), len(points(scenario))
        sweep = f", a sweep of {count} points" if count > 1 else ""
        counts = f"{services} service{'s' * (services > 1)}, {scenario.rounds} rounds"
        result(f"{source}: valid: {scenario.name}, {counts}{sweep}")
