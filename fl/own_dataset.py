"""Data sets of a user's own: a function without arguments that returns four arrays.

    @flmarket.dataset("shapes")
    def shapes():
        \"\"\"Circles and squares, in colour.\"\"\"
        return train_images, train_labels, test_images, test_labels

Images are uint8 arrays [n, channels, height, width], or [n, height, width] for one channel. Labels are integers [n],
from 0 to L - 1, each of which some training image has. The first line of the docstring describes the data set.

Nothing else is declared. The number of labels, the shape of the images, the sizes and the rarest label follow from the
arrays, and so they cannot contradict them. The price is that the function is called as soon as these are needed, which
is when a scenario that names the data set is checked. It must always return the same: the last four data sets stay
loaded, and the function of another one is called again when its turn comes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fl.blame import Foreign, blame, describe
from fl.dataset import ARRAY_NAMES, Dataset, DatasetError, DatasetInfo, Source
from fl.own_arrays import checked, dataset_of

_KEPT = 4  # data sets that stay loaded, so that those who check a scenario and those who run it share the arrays


def problem(found: Any) -> str | None:
    """Return why something cannot be a data set, as far as can be seen without calling it."""
    if not callable(found):
        return f"is {found!r}, which cannot be called; a data set is a function that returns its arrays"
    try:
        hash(found)  # data sets that stay loaded are told apart by their functions
    except Exception as error:
        return f"cannot be told from others: {describe(error)}; register a plain function"
    try:
        inspect.signature(found).bind()
    except ValueError:  # of a function that is not written in Python, nothing is known
        return None
    except TypeError as error:
        return f"must be a function without arguments: {error}"
    return None


@dataclass(frozen=True)
class OwnDataset(Source):
    """A data set that a user's function returns."""

    name: str  # the name it is registered under
    function: Callable[[], Any]  # returns its arrays

    @property
    def info(self) -> DatasetInfo:
        return _load(self.name, self.function).info

    def load(self, root: Path, *, download: bool) -> Dataset:
        return _load(self.name, self.function)


def description(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0].strip()


@lru_cache(maxsize=_KEPT)
def _load(name: str, function: Callable[[], Any]) -> Dataset:
    try:
        arrays = checked(_called(function))
    except DatasetError as error:
        raise DatasetError(f"data set {name!r} ({_place(function)}): {error}") from error.__cause__
    return dataset_of(name, description(function), "plug-in", arrays)


def _place(function: Callable[..., Any]) -> str:
    """Return where a function stands, as ``file:line``; of one that is not written in Python, its name."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _called(function: Callable[[], Any]) -> tuple[Any, ...]:
    with Foreign(lambda error: DatasetError(f"raised {describe(error)}{blame(error)}")):
        found = function()
    if not isinstance(found, (tuple, list)) or len(found) != len(ARRAY_NAMES):
        what = f"{len(found)} things" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
        raise DatasetError(
            f"must return four arrays (training images, training labels, test images, test labels), not {what}"
        )
    return tuple(found)
