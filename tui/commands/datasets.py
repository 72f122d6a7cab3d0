"""``flmarket datasets``: a table of the data sets, and the folder of their files."""

import typer

from tui.commands.console import stdout


def datasets() -> None:
    """List the data sets a service can learn, and the folder of their files."""
    from rich.table import Table

    from fl.datasets import data_root, info, names

    table = Table("name", "labels", "train", "test", "source", "what it is")
    for name in names():
        found = info(name)
        sizes = (f"{found.labels}", f"{found.train_size:,}", f"{found.test_size:,}")
        table.add_row(name, *sizes, found.source, found.description)
    stdout().print(table)
    typer.echo(f"Downloaded files are kept in {data_root()} (set FLMARKET_DATA to change it).")
