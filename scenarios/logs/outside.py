"""Files that the user names for results: none in the directory of a run, where whatever else stands makes it unusable.

A slip such as ``flmarket export RUN --csv RUN/rounds.csv`` would replace the very log that it reads.
"""

import os
from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.files import require_folder, require_writable
from scenarios.logs.directory import LOG, META, SCENARIO


def require_outside_runs(path: Path) -> None:
    """Refuse a file that is, or would be, in the directory of a run, or in a folder below it."""
    _require_no_run(path, Path(os.path.realpath(path)).parent)


def require_place(path: Path) -> None:
    """Check a file that the user named for results before the work that they are results of. Nothing is changed."""
    require_outside_runs(path)
    require_writable(path)


def require_folder_place(path: Path) -> None:
    """Check a folder that the user named for results, as ``require_place`` does a file; it is made if need be."""
    _require_no_run(path, Path(os.path.realpath(path)))
    require_folder(path)


def _require_no_run(path: Path, real: Path) -> None:
    for folder in (real, *real.parents):
        if (folder / SCENARIO).exists() and any((folder / name).exists() for name in (META, LOG)):
            raise InputError(
                f"{path}: {folder} is the directory of a run, in which nothing else is kept; choose another"
            )
