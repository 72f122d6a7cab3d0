"""``flmarket plugins``: a table of all plug-ins that a scenario or a report can name, of every kind."""

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.core.plugins import summary
from flmarket.core.rich_console import show
from scenarios.file.schema import REGISTRIES


def plugins(plugin: Plugins = None) -> None:
    """List all plug-ins that a scenario or a report can name, of every kind, built in and your own."""
    load_plugins(plugin)
    rows = (
        [(it.kind, entry.name, entry.source, entry.problem or summary(entry.thing)) for entry in it.listing()]
        for it in REGISTRIES
    )
    show(["kind", "name", "from", "what it is"], *rows)
