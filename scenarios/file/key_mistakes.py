"""Problems that pydantic finds in single keys, each at its path; mostly in its own words."""

import re
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from flmarket.core.names import did_you_mean
from scenarios.file.keys import schema_at
from scenarios.file.problems import Mistake, Path, shown
from scenarios.file.schema import OWN

_HOMES = {
    (): "at the top of the file, above the first [table]",
    ("clients",): "in [clients]",
    ("data",): "in [data]",
    ("market",): "in [market]",
    ("training",): "in [training]",
    ("timeline",): "in [timeline]",
    ("services", 0): "in [[services]]",
    ("streams", 0): "in [[streams]]",
}
"""Tables of the file, and where a key of theirs belongs."""


def findings(error: ValidationError) -> list[Mistake]:
    """Return what is wrong with a scenario's keys."""
    return [
        # What is wrong with the key of a table of any keys is said at the key.
        Mistake(tuple(part for part in problem["loc"] if part != "[key]"), _sentence(problem))
        for problem in error.errors(include_url=False)
        if not _follows_from_another(problem)
    ]


def _follows_from_another(problem: ErrorDetails) -> bool:
    """Whether a list is called too short only because its broken items were left out."""
    return problem["type"] == "too_short" and len(problem["input"]) >= problem["ctx"]["min_length"]


def _sentence(problem: ErrorDetails) -> str:
    given, message = problem["input"], re.sub(r"^\w+ should ", "must ", problem["msg"]).replace(" after validation", "")
    match problem["type"]:
        case "extra_forbidden":
            return unknown_key(problem["loc"])
        case "missing":
            return "is missing"
        case "tuple_type":
            brackets = f"; tables of a list have double brackets, [[{'.'.join(map(str, problem['loc']))}]]"
            return f"must be a list, not {shown(given)}{brackets if isinstance(given, Mapping) else ''}"
        case "dict_type" | "model_type":
            return f"must be a table, not {shown(given)}"
        case "literal_error":
            choices = (schema_at(problem["loc"]) or {}).get("enum", ())
            return f"{message}, not {shown(given)}{did_you_mean(given, choices)}"
        case "int_type" | "float_type" if isinstance(given, list | tuple):
            key = ".".join("NAME" if isinstance(part, int) else part for part in problem["loc"])
            return f"{message}, not a list; several values make a sweep: sweep.{key}=[...]"
    says_all = problem["type"] == OWN or isinstance(given, Mapping | list | tuple)
    return message if says_all else f"{message}, not {shown(given)}"


def unknown_key(path: Path) -> str:
    """Return the message for a key that its table does not have: which one was meant, or where it belongs."""
    *way, key = path
    # Easily done, as a TOML table ends only at the next.
    if homes := [place for table, place in _HOMES.items() if key in _keys(table)]:
        return f"unknown key here; it belongs {homes[0]}"
    known = _keys(tuple(way))
    near = did_you_mean(key, known)
    return f"unknown key{near}" if near else f"unknown key; choose from {', '.join(known)}"


def _keys(table: Path) -> list[str]:
    return list((schema_at(table) or {}).get("properties", ()))
