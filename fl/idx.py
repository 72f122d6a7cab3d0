"""Reading IDX files, the raw format of MNIST and its relatives, with every check that tells a good file from a bad one."""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fl.errors import InputError

_TYPES = {0x08: np.dtype(np.uint8), 0x0C: np.dtype(">i4")}


class DatasetError(InputError):
    """A data set's file is missing or corrupt; says which, what is wrong with it, and what to do."""


@dataclass(frozen=True, slots=True)
class IdxFile:
    """The content of one file.

    Attributes:
        array: read-only, of the shape that the file declares.
        digest: SHA-256 of the uncompressed file, in hexadecimal.
    """

    array: npt.NDArray[np.generic]
    digest: str


def read_idx(path: Path, dimensions: int) -> IdxFile:
    """Read an IDX file, or ``path`` with ``.gz`` behind it where only that is there.

    Args:
        path: of the uncompressed file.
        dimensions: of the array that it must hold.

    Raises:
        DatasetError: it is missing, unreadable, or not a whole IDX file of that many dimensions.
    """
    packed = path.with_name(path.name + ".gz")
    found = path if path.exists() or not packed.exists() else packed
    try:
        content = found.read_bytes()
        if found == packed:
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file") from None
    except (OSError, EOFError) as error:
        raise corrupt(found, f"can't be read ({error})") from error
    kind = _TYPES.get(content[2]) if len(content) >= 4 and content[:2] == b"\0\0" else None
    if kind is None:
        raise corrupt(found, "does not begin with the magic number of an IDX file")
    if content[3] != dimensions:
        raise corrupt(found, f"holds an array of {content[3]} dimensions, not {dimensions}")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise corrupt(found, "ends within its header")
    shape = tuple(int(size) for size in np.frombuffer(content, dtype=">u4", count=dimensions, offset=4))
    wanted = start + kind.itemsize * int(np.prod(shape, dtype=np.int64))
    if len(content) != wanted:
        raise corrupt(found, f"has {len(content):,} bytes where its header promises {wanted:,}")
    # frombuffer over bytes is read-only already.
    return IdxFile(np.frombuffer(content, dtype=kind, offset=start).reshape(shape), hashlib.sha256(content).hexdigest())


def corrupt(path: Path, problem: str) -> DatasetError:
    """Return the error for a file that is there but no good."""
    return DatasetError(f"{path}: {problem}; delete it and run again to download it afresh, or put a good copy there")
