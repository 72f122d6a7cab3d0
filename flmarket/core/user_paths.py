"""The user's home folder, and paths that begin with it."""

from os import PathLike
from pathlib import Path

from flmarket.core.errors import InputError


def expanded(path: str | PathLike[str]) -> Path:
    """Return a path with a home folder in place of a tilde at its beginning."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: the home folder that '~' stands for is not known; write it out") from None


def home() -> Path:
    """Return the user's home folder."""
    try:
        return Path.home()
    except RuntimeError:
        raise InputError("this user has no home folder; set HOME to a folder that flmarket may write to") from None
