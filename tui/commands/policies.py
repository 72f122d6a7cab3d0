"""``flmarket policies``: a table of the policies that are installed."""

from tui.commands.console import stdout


def policies() -> None:
    """List the policies a service can use."""
    from rich.table import Table

    from learning.policy import load, names

    table = Table("name", "privileged", "what it does")
    for name in names():
        found = load(name)
        table.add_row(name, "yes" if found.privileged else "", found.summary)
    stdout().print(table)
