"""``flmarket policies``: a table of the policies that are installed."""

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.core.plugin_options import defaults
from flmarket.core.plugins import summary
from flmarket.core.rich_console import show
from learning.policy import POLICIES


def policies(plugin: Plugins = None) -> None:
    """List the policies a service can use."""
    load_plugins(plugin)
    rows = []
    for entry in POLICIES.listing():
        privileged = "yes" if entry.thing and entry.thing.privileged else ""
        options = ", ".join(f"{key}={value!r}" for key, value in defaults(entry.thing, given=1).items())
        rows.append((entry.name, privileged, entry.source, entry.problem or summary(entry.thing), options))
    show(["name", "privileged", "from", "what it does", "options: --policy 'NAME(KEY=VALUE)'"], rows)
