"""Data sets by name: those of flmarket (``embedded``, ``downloaded``), of plug-ins, and files (``own_files``).

A data set is *official* when the SHA-256 of all its files or arrays is known to be right: recorded next to the data set
(``OFFICIAL``), or in the receipt of a download whose archive torchvision had checked. Any other copy loads just as
well, but is marked unofficial: nothing proves that it is what its name says.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fl.data import downloaded, embedded
from fl.data.dataset import Dataset, DatasetError, DatasetInfo, Source
from fl.data.downloaded import data_root
from fl.data.own_dataset import OwnDataset, problem
from fl.data.own_files import OwnFiles, is_path
from flmarket.core.plugins import Registry

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "data_root",
    "dataset",
    "info",
    "is_path",
    "load",
    "source",
]

BUILTIN: Mapping[str, Source] = MappingProxyType(
    {source.info.name: source for source in (*embedded.SOURCES, *downloaded.SOURCES)}
)

DATASETS: "Registry[Source | Callable[[], Any]]" = Registry("data set", "flmarket.datasets", BUILTIN, problem)
"""All data sets, by name. A plug-in is a function without arguments that returns the arrays (``own_dataset``)."""

dataset = DATASETS.decorator
"""Return a decorator that registers a function as a data set: ``@dataset("shapes")``; see ``fl.data.own_dataset``."""


def info(name: str) -> DatasetInfo:
    """Return what is known of a data set. A plug-in, or a user's own files, are loaded for that.

    Raises:
        UnknownPluginError: no data set has that name; suggests the nearest one.
        PluginError: the package that registers it cannot be imported.
        DatasetError: a plug-in or a user's own files are not what a data set consists of.
    """
    return source(name).info


def load(name: str, root: Path | None = None, *, download: bool = True) -> Dataset:
    """Load a data set, downloading it first if its files are missing.

    Args:
        name: the data set's name, or the path of a user's own files.
        root: folder of downloaded data sets; ``data_root()`` by default.
        download: whether missing files may be downloaded.

    Raises:
        UnknownPluginError, PluginError: as in ``info``.
        DatasetError: files are corrupt, or missing and cannot be downloaded, or a plug-in's arrays are not what they
            must be; says which, and what to do.
    """
    return source(name).load(data_root() if root is None else root, download=download)


def source(name: str) -> Source:
    """Return the source of a data set: another one if its files or its function are. Errors as in ``info``."""
    if name not in BUILTIN and is_path(name) and name not in DATASETS.names():
        return OwnFiles.of(name)
    plugin = DATASETS.load(name)
    return plugin if isinstance(plugin, Source) else OwnDataset(name, plugin)
