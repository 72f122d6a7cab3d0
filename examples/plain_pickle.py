"""Reads pickles of plain containers, numbers, text and NumPy arrays of these, and refuses others: nothing in them runs.

flmarket itself reads no pickles; the converters here do, because others publish their partitions and traces as such.
"""

import io
import pickle
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

LARGEST = 1_000_000_000  # bytes
_PLAIN = (dict, frozenset, int, list, set, tuple)
CONTAINERS = {"bytes": lambda: b"", **{kind.__name__: kind for kind in _PLAIN}}
NUMPY = {"_reconstruct", "scalar", "_frombuffer"}  # which put an array or a number together


class PlainReader(pickle.Unpickler):
    """Reads pickles of plain values."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes a plain value, and refuse whatever else would be imported."""
        where = module.replace("numpy.core.", "numpy._core.")  # as NumPy 1 wrote them
        if module in ("builtins", "__builtin__") and name in CONTAINERS:
            return CONTAINERS[name]
        if module == "collections" and name in ("OrderedDict", "defaultdict"):
            return OrderedDict if name == "OrderedDict" else defaultdict
        if (module, name) == ("_codecs", "encode"):  # of the bytes of an array, in old pickles
            return lambda text, _: text.encode("latin1")
        if (module, name) == ("numpy", "ndarray"):
            return np.ndarray
        if (module, name) == ("numpy", "dtype"):
            return number_type
        if where in ("numpy._core.multiarray", "numpy._core.numeric") and name in NUMPY:
            return super().find_class(where if np.__version__ >= "2" else where.replace("_core", "core"), name)
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}; only plain values are read")


def number_type(text: str, *rest: Any) -> np.dtype[Any]:
    """Return the type of an array's entries: numbers or text, no objects."""
    found = np.dtype(text, *rest)
    if found.kind not in "biufSU":
        raise pickle.UnpicklingError(f"the file has an array of {found}; only numbers and text are read")
    return found


def read(path: Path) -> Any:
    """Return the value in a pickle.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a pickle of plain values; says why.
    """
    from flmarket.core.files import read_regular

    content = read_regular(path, LARGEST)
    try:
        return PlainReader(io.BytesIO(content)).load()
    except Exception as error:  # damaged ones raise all kinds
        raise ValueError(f"is not a pickle that is read: {error}") from error
