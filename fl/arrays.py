"""Names for the types of NumPy arrays, the same in all packages. Docstrings say their shapes."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
UInt32Array = npt.NDArray[np.uint32]
UInt64Array = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

Pixels = ByteArray | Float32Array  # images: 0 is black, 255 is white; or features, which are float32

Labels = ByteArray  # one label for each image, counted from 0

A = TypeVar("A", bound=AnyArray)


def read_only(array: A) -> A:
    """Return a view that cannot be written to, for code of others; the array itself stays as it is."""
    view = array.view()
    view.setflags(write=False)
    return view
