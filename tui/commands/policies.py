"""``flmarket policies``: a table of the policies that are installed."""

from tui.commands.arguments import Plugins, load_plugins
from tui.commands.console import stdout


def policies(plugin: Plugins = None) -> None:
    """List the policies a service can use."""
    from rich.table import Table

    from fl.blame import describe
    from fl.errors import InputError
    from fl.plugins import summary
    from learning.policy import POLICIES, is_privileged

    load_plugins(plugin)
    table = Table("name", "privileged", "from", "what it does")
    for entry in POLICIES.listing(_broken()):
        privileged, text = "", entry.problem
        if entry.thing:
            try:
                privileged, text = "yes" if is_privileged(entry.name) else "", summary(entry.thing)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plug-in's attributes may raise anything, SystemExit too
                text = str(error) if isinstance(error, InputError) else f"summary: {describe(error)}"
        table.add_row(entry.name, privileged, entry.source, text)
    stdout().print(table)


def _broken() -> dict[str, str]:
    """Return why policies of installed packages cannot be imported without ending the process, by name."""
    from fl.errors import InputError
    from learning.policy import POLICIES
    from scenarios.running.rehearsal import Rehearsal

    found: dict[str, str] = {}
    names = [name for name in POLICIES.names() if not POLICIES.is_builtin(name) and name not in POLICIES.registered]
    while names:
        with Rehearsal() as rehearsal:
            try:
                while names:
                    rehearsal.policies([(names[0], None)])
                    del names[0]
            except InputError as error:
                found[names.pop(0)] = str(error)
    return found
