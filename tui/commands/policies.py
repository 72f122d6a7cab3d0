"""``flmarket policies``: a table of the policies that are installed."""

from tui.commands.arguments import Plugins, load_plugins
from tui.commands.console import stdout


def policies(plugin: Plugins = None) -> None:
    """List the policies a service can use."""
    from rich.table import Table

    from fl.plugins import PluginError, line_about
    from learning.policy import POLICIES, is_privileged

    load_plugins(plugin)
    table = Table("name", "privileged", "from", "what it does")
    for entry in POLICIES.listing():
        privileged, text = "", line_about(entry)
        if entry.thing:
            try:
                privileged = "yes" if is_privileged(entry.name) else ""
            except PluginError as error:
                text = str(error)
        table.add_row(entry.name, privileged, entry.source, text)
    stdout().print(table)
