"""What the schema says of a key, in words: for the form of the TUI and the reference in the documentation."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from scenarios.file.problems import number
from scenarios.file.toml_text import value_text

_LIMITS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def bare(annotation: Any) -> Any:
    """Return a type without ``Annotated`` and ``None``."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(part for part in get_args(annotation) if part is not type(None))
        else:
            return annotation


def limits(info: FieldInfo) -> list[str]:
    """Return the limits of a key's number: ``["at least 0", "less than 1"]``; empty without limits."""
    notes = [*info.metadata]
    if get_origin(info.annotation) in (Union, UnionType):
        notes += [note for part in get_args(info.annotation) for note in getattr(part, "__metadata__", ())]
    return list(dict.fromkeys(_words(notes)))


def item_limits(info: FieldInfo) -> list[str]:
    """Return the limits of the numbers in a key's list; empty without limits."""
    [item, *_] = get_args(bare(info.annotation))
    return list(dict.fromkeys(_words(getattr(item, "__metadata__", ()))))


def default(info: FieldInfo) -> str | None:
    """Return a key's default as it is typed into a field: text without quotes, the rest as TOML; empty for no value.

    None for a key that is required. Where a value is found for a key that is absent, the words that say which.
    """
    if info.is_required():
        return None
    value = info.get_default(call_default_factory=True)
    if value is None:
        return absent(info) or ""
    return value if isinstance(value, str) else value_text(value)


def absent(info: FieldInfo) -> str | None:
    """Return what an optional key that is absent means, where that is not simply nothing."""
    extra = info.json_schema_extra
    return str(extra["absent"]) if isinstance(extra, dict) and "absent" in extra else None


def _words(notes: Any) -> Iterator[str]:
    for note in notes:
        for part in [note, *getattr(note, "metadata", ())]:
            for key, word in _LIMITS.items():
                if hasattr(part, key):
                    yield f"{word} {_limit(getattr(part, key))}"


def _limit(value: float) -> str:
    return number(int(value)) if float(value).is_integer() and abs(value) < 1e15 else number(value)
