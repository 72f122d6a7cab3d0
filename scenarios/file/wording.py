"""What pydantic finds wrong with a single key, in our own words."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from flmarket.core.names import did_you_mean
from scenarios.file.problems import Finding, Path, number, shown
from scenarios.file.schema import Scenario

_WANTED = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text in quotes",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "finite_number": "must be a finite number",
}
_LIMITS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def findings(errors: list[ErrorDetails]) -> list[Finding]:
    """Return pydantic's errors in our words, each at its path."""
    return [Finding(error["loc"], _sentence(error)) for error in errors if not _consequence(error)]


def _consequence(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because its broken items were left out."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _sentence(error: ErrorDetails) -> str:
    kind, path, given = error["type"], error["loc"], error["input"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_key(path)
    if kind == "missing":
        hint = ": at least one [[services]] table is needed" if path == ("services",) else ""
        return f"is missing{hint}"
    if kind == "tuple_type" and path == ("services",):
        return f"must be tables with double brackets, [[services]], not {shown(given)}"
    if kind == "float_type" and isinstance(given, int) and not isinstance(given, bool):
        return f"must be a number that a computer can hold, not {number(given)}"
    if kind in _WANTED:
        return f"{_WANTED[kind]}, not {shown(given)}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        percent = path[-1] == "target_accuracy" and 1 < given <= 100
        hint = f" (a fraction: {number(given)} % is {given / 100:g})" if percent else ""
        bound = number(int(context[name]) if float(context[name]).is_integer() else context[name])
        return f"{words} {bound}, not {number(given)}{hint}"
    if kind == "literal_error":
        return _choice(path, given)
    return _size_or_text(kind, path, given, context, str(error["msg"]))


def _size_or_text(kind: str, path: Path, given: Any, context: Mapping[str, Any], message: str) -> str:
    """Word what is left: lists and texts of the wrong size, names unfit for a path, and the schema's own sentences."""
    match kind:
        case "too_short":
            return "must not be empty"
        case "too_long":
            return f"must have at most {number(context['max_length'])} items"
        case "string_too_short":
            return "must not be empty"
        case "string_unicode":
            return "must be valid Unicode text"
        case "string_too_long" if path[-1] not in ("name", "model"):
            return f"must have at most {number(context['max_length'])} letters, not {number(len(given))}"
        case "string_pattern_mismatch" | "string_too_long" if path[-1] in ("name", "model"):
            return f"must be 1 to 64 of A-Z a-z 0-9 - _ . and not start with a dot or a hyphen, not {shown(given)}"
        case "string_pattern_mismatch":
            return "must not hold a null character"
        case _:
            return message


def _choice(path: Path, given: object) -> str:
    choices = [str(choice) for choice in get_args(annotation_at(path))]
    hint = did_you_mean(given, choices)
    words = f"must be {' or '.join(choices)}" if len(choices) < 3 else f"must be one of {', '.join(choices)}"
    return f"{words}, not {shown(given)}{hint}"


def unknown_key(path: Path) -> str:
    """Return the message for a key that its table does not have: which one was meant, or where it belongs."""
    key, table = str(path[-1]), annotation_at(path[:-1])
    known = list(table.model_fields)
    if near := did_you_mean(key, known):
        return f"unknown key{near}"
    if home := _home_of(key):
        return f"unknown key here; it belongs {home}"
    return f"unknown key; choose from {', '.join(known)}"


def _home_of(key: str) -> str:
    """Say where a key belongs that stands in the wrong table: easily done, as a TOML table ends only at the next."""
    if key in Scenario.model_fields:
        return "at the top of the file, above the first [table]"
    for section in ("clients", "training", "timeline"):
        if key in annotation_at((section,)).model_fields:
            return f"in [{section}]"
    return "in [[services]]" if key in annotation_at(("services", 0)).model_fields else ""


def annotation_at(path: Path) -> Any:
    """Return the type that the schema has at a path, without ``None`` and annotations; None where it has nothing."""
    current: Any = Scenario
    for part in path:
        if current is Any:
            return Any
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(str(part))
            if field is None:
                return None
            current = field.annotation
        elif get_origin(current) is tuple and isinstance(part, int):
            current = get_args(current)[0]
        elif get_origin(current) is dict:
            current = get_args(current)[1]
        else:
            return None
        if get_origin(current) in (Union, UnionType):
            current = next(option for option in get_args(current) if option is not type(None))
        if get_origin(current) is Annotated:
            current = get_args(current)[0]
    return current
