"""``flmarket datasets``: a table of the data sets, and the folder of their files."""

from tui.commands.arguments import Plugins, load_plugins
from tui.commands.console import result, stdout


def datasets(plugin: Plugins = None) -> None:
    """List the data sets a service can learn, and the folder of their files."""
    from rich.table import Table

    from fl.datasets import data_root, listing

    load_plugins(plugin)
    table = Table("name", "labels", "images", "train", "test", "source", "what it is")
    for entry in listing():
        sizes = ("", "", "", "")  # of a plug-in, nothing is known before it is loaded
        if (known := entry.info) is not None:
            sizes = (f"{known.labels}", str(known.shape), f"{known.train_size:,}", f"{known.test_size:,}")
        table.add_row(entry.name, *sizes, entry.source, entry.problem or entry.description)
    stdout().print(table)
    result(f"Downloaded files are kept in {data_root()} (set FLMARKET_DATA to change it).")
