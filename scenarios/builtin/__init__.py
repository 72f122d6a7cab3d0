"""The scenario files that come with flmarket, one TOML file each. Imports little: the first screen lists them."""

from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.names import unknown

_BUILTIN = Path(__file__).parent


def builtin_names() -> list[str]:
    """Return the names of the scenarios that come with flmarket."""
    return sorted(path.stem for path in _BUILTIN.glob("*.toml"))


def builtin_path(name: str) -> Path:
    """Return the file of a built-in scenario.

    Raises:
        InputError: it is unknown; suggests the nearest name.
    """
    known = builtin_names()
    if name not in known:
        raise InputError(unknown("built-in scenario", name, known))
    return _BUILTIN / f"{name}.toml"


def builtin_text(name: str) -> str:
    """Return the text of a built-in scenario. Errors as in ``builtin_path``."""
    return builtin_path(name).read_text(encoding="utf-8")
