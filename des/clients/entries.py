"""The entries of a table that clients have in a round, which are looked up only where somebody asks for them."""

from typing import Any

from numpy.lib.mixins import NDArrayOperatorsMixin

from fl.arrays import AnyArray, IntArray


class Entries(NDArrayOperatorsMixin):
    """Values [M, C] that stand in a column of a table, read-only: an array, but for when its values are looked up.

    With indices only those that are asked for are, in whatever else it does all.
    """

    def __init__(self, column: AnyArray, at: IntArray) -> None:
        self._column, self._at = column.reshape(-1), at  # at [M, C]: places in the flat column

    def __getitem__(self, places: Any) -> Any:
        found = self._column.take(self._at[places])
        found.setflags(write=False)
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        found: AnyArray = self[:]
        return found.astype(dtype) if dtype or copy else found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(it[:] if isinstance(it, Entries) else it for it in inputs), **options)

    def __len__(self) -> int:
        return len(self._at)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols by which NumPy would read the memory of an array that is gone by then
            raise AttributeError(name)
        return getattr(self[:], name)


Column = AnyArray | Entries

FEW = 4096  # values that are looked up at once, which takes less time than to do it later


def entries(column: AnyArray, at: IntArray) -> Column:
    """Return the values at some places [M, C] of a column, read-only."""
    found = Entries(column, at)
    return found if at.size > FEW else found[:]
