"""``flmarket plugins``: a table of all plug-ins that a scenario can name, of every kind."""

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.console import show
from flmarket.core.plugins import summary
from scenarios.file.schema import REGISTRIES


def plugins(plugin: Plugins = None) -> None:
    """List all plug-ins that a scenario can name, of every kind, built in and your own."""
    from rich.table import Table

    load_plugins(plugin)
    table = Table("kind", "name", "from", "what it is")
    for registry in REGISTRIES:
        for entry in registry.listing():
            table.add_row(registry.kind, entry.name, entry.source, entry.problem or summary(entry.thing))
        table.add_section()
    show(table)
