"""Data sets in one ``.npz`` file, as ``numpy.savez`` writes it: three arrays with an entry for each image.

``pixels``: uint8 [n, channels, height, width], or [n, height, width] for one channel. ``labels``: integers [n], from 0.
``split``: [n], ``"train"`` or ``"test"``, or 0 or 1 in their place.

The file is a stranger's: arrays of Python objects, which are pickles, are refused, and what the headers of the arrays
say is checked before memory is asked for.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from fl.arrays import AnyArray
from fl.blame import describe
from fl.dataset import DatasetError
from fl.image_sizes import require_small

ARRAYS = ("pixels", "labels", "split")
_SUFFIX = ".npy"
_LONGEST_WORD = 64  # bytes of one entry of ``labels`` or ``split``


def read(path: Path) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return training images, training labels, test images and test labels, which have yet to be checked."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names([name.removesuffix(_SUFFIX) for name in archive.namelist() if name.endswith(_SUFFIX)])
            _check_lengths({name: _checked_length(archive, name) for name in ARRAYS})
            pixels, labels, split = (_array(archive, name) for name in ARRAYS)
    except DatasetError:
        raise
    except FileNotFoundError:
        raise DatasetError("no such file") from None
    except zipfile.BadZipFile as error:
        raise DatasetError(f"is not an .npz file: {error}; write it with numpy.savez") from error
    except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise DatasetError(f"cannot be read: {error}; write it again with numpy.savez") from error
    except Exception as error:  # headers are Python literals: whatever their parsers, and decompressors, raise
        raise DatasetError(f"cannot be read: {describe(error)}; write it again with numpy.savez") from error
    test = _is_test(split)
    for which, name in ((~test, "train"), (test, "test")):
        if not which.any():
            raise DatasetError(f"no image is in the split {name!r}; its split must name both 'train' and 'test'")
    return pixels[~test], labels[~test], pixels[test], labels[test]


def _check_names(names: list[str]) -> None:
    if missing := [name for name in ARRAYS if name not in names]:
        raise DatasetError(
            f"lacks {_listed(missing)}; a data set is the arrays pixels, labels and split, and the file has "
            f"{_listed(names) or 'none'}"
        )


def _check_lengths(lengths: dict[str, int]) -> None:
    for name in ("labels", "split"):
        if lengths[name] != lengths["pixels"]:
            verb = "has" if name == "split" else "have"
            raise DatasetError(f"its {name} {verb} the length {lengths[name]:,}, for {lengths['pixels']:,} images")


def _checked_length(archive: zipfile.ZipFile, name: str) -> int:
    """Return how many entries an array has; raise unless it is of the kind and size that a data set's can be."""
    with archive.open(name + _SUFFIX) as file:
        version = npy.read_magic(file)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = header(file)
    if dtype.hasobject:
        raise DatasetError(f"its {name} are Python objects, which are never loaded; save an array of one type")
    if name == "pixels":
        if dtype != np.uint8:
            raise DatasetError(f"its pixels must be uint8, from 0 to 255, not {dtype}")
        if len(shape) not in (3, 4) or 0 in shape:
            raise DatasetError(
                "its pixels must have the shape [n, channels, height, width], or [n, height, width] for one channel, "
                f"with no dimension 0, not {list(shape)}"
            )
        require_small(shape[0], shape[1:])
    elif len(shape) != 1:
        raise DatasetError(f"its {name} must have the shape [n], one for each image, not {list(shape)}")
    elif dtype.itemsize > _LONGEST_WORD:
        raise DatasetError(f"its {name} must be short words or numbers, not {dtype}")
    return int(shape[0])


def _array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    with archive.open(name + _SUFFIX) as file:
        found: AnyArray = npy.read_array(file, allow_pickle=False)
        return found


def _is_test(split: AnyArray) -> AnyArray:
    allowed: tuple[Any, Any] = ("train", "test") if split.dtype.kind == "U" else (0, 1)
    if split.dtype.kind not in "Ubiu":
        raise DatasetError(f"its split must be 'train' or 'test' (or 0 or 1) for each image, not {split.dtype}")
    wrong = split[~np.isin(split, allowed)]
    if wrong.size:
        raise DatasetError(f"its split must be 'train' or 'test' (or 0 or 1) for each image, not {wrong[0].item()!r}")
    test: AnyArray = split == allowed[1]
    return test


def _listed(names: list[str]) -> str:
    return ", ".join(names)
