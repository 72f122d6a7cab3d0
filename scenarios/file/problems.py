"""The problems of a scenario: file and line, key, and message."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.text import printable

Path = tuple[str | int, ...]
"""The place of a value in a scenario's data: ``("services", 1, "budget")``."""

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_SHOWN = 60

NAMED = (("services",), ("streams",), ("clients", "groups"))
"""Lists of tables that are known by their names."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A problem at a place in the data, before file and line are known.

    Attributes:
        path: the path of the value at fault, which may be missing.
        message: what is wrong.
        see: the path of a related value, whose line ends the message.
    """

    path: Path
    message: str
    see: Path | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a scenario; ``str()`` is the line that users see.

    Attributes:
        file: the scenario file as the user named it, or what was asked for besides (``clients.cores=x``).
        line: in the file, from 1; None where there is none.
        key: dotted, services by name (``services.mnist.budget``); empty where no key is at fault.
        message: what is wrong.
    """

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        # What sets the key has named it already.
        named = not self.key or self.file.startswith((f"{self.key}=", f"{self.key} = "))
        return printable(f"{place}: {self.message}" if named else f"{place}: {self.key}: {self.message}")


class ScenarioError(InputError):
    """A scenario is unusable.

    Attributes:
        problems: all that is wrong, in the order of the file's lines.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(*self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def key_text(path: Path, data: Mapping[str, Any]) -> str:
    """Write a path as users write keys: named tables by name, list items not at all (their values distinguish them)."""
    parts: list[str] = []
    for depth, part in enumerate(path):
        if isinstance(part, str):
            parts.append(part if BARE_KEY.fullmatch(part) or path[0] in ("sweep", "runs") else quoted(part))
        elif path[:depth] in NAMED:
            table: Any = data
            for step in path[: depth + 1]:
                table = table[step]
            name = table.get("name") if isinstance(table, Mapping) else None
            # A table without a usable name is known by its place.
            parts.append(name if isinstance(name, str) and 0 < len(name) <= _LONGEST_SHOWN else f"#{part + 1}")
    return printable(".".join(parts))


def quoted(text: str) -> str:
    """Write a text in double quotes, shortened where it is long, on one line and safe for a terminal."""
    shown = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
    return printable(json.dumps(shown, ensure_ascii=False))


def shown(value: object) -> str:
    """Write a value as a message shows it: as TOML, shortened where it is long."""
    match value:
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
    return quoted(str(value))


def number(value: float) -> str:
    """Write a number, thousands apart where it is large and whole."""
    if isinstance(value, int):
        # An integer of thousands of digits cannot even be turned into text.
        return f"{value:,}" if abs(value) < 10**30 else "an integer of more than 30 digits"
    return f"{int(value):,}" if value.is_integer() and 10_000 <= abs(value) < 1e15 else repr(value)
