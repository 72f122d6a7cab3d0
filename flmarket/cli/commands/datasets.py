"""``flmarket datasets``: a table of the data sets, and the folder of their files."""

from fl.data.dataset import Source
from fl.data.registry import DATASETS, data_root
from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.console import result
from flmarket.core.plugins import summary
from flmarket.core.rich_console import show


def datasets(plugin: Plugins = None) -> None:
    """List the data sets a service can learn, and the folder of their files."""
    load_plugins(plugin)
    rows = []
    for entry in DATASETS.listing():
        sizes, source = ("", "", "", ""), entry.source  # of a plug-in, nothing is known before it is loaded
        if isinstance(entry.thing, Source):
            known = entry.thing.info
            sizes = (f"{known.labels}", str(known.shape), f"{known.train_size:,}", f"{known.test_size:,}")
            source = known.source
        rows.append((entry.name, *sizes, source, entry.problem or summary(entry.thing)))
    show(["name", "labels", "images", "train", "test", "source", "what it is"], rows)
    result(f"Downloaded files are kept in {data_root()} (set FLMARKET_DATA to change it).")
