"""The reference part of docs/scenario.md, made from the schema.

``python -m scenarios.file.reference docs/scenario.md`` renews it in the page; a test compares the two.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fl.regime import Regime
from flmarket.core.crash import guarded
from flmarket.core.errors import InputError
from flmarket.core.names import NAME_PATTERN
from scenarios.file.clients import Clients
from scenarios.file.keys import absent, bare, default, item_limits, limits
from scenarios.file.problems import number
from scenarios.file.schema import Intervention, Market, Scenario, Service, Timeline, Training, TrainingOverride
from scenarios.file.toml_text import value_text

BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"

SECTIONS: dict[str, type[BaseModel]] = {
    "At the top": Scenario,
    "[clients]": Clients,
    "[market]": Market,
    "[training]": Training,
    "[timeline]": Timeline,
    "[[services]]": Service,
    "[[interventions]]": Intervention,
}

_TYPES = {int: "integer", float: "number", str: "text", Any: "any"}


def reference() -> str:
    """Return the keys of each section as Markdown."""
    return "\n\n".join(part for title, table in SECTIONS.items() for part in _section(title, table)) + "\n"


def renewed(page: str, made: str) -> str:
    """Return a page whose reference part is replaced by one that was made anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{made}\n{END}{tail}"


def renew(path: Path, made: str) -> None:
    """Replace the reference part of a page's file."""
    path.write_text(renewed(path.read_text(encoding="utf-8"), made), encoding="utf-8")


def renew_named(make: Callable[[], str]) -> None:
    """Replace the reference part of the page that the command line names."""
    if len(sys.argv) != 2:
        raise InputError("name one page to renew, such as docs/scenario.md or docs/logs.md")
    try:
        renew(Path(sys.argv[1]), make())
    except UnicodeDecodeError as error:
        raise InputError(f"{sys.argv[1]}: is not UTF-8 text") from error


def _section(title: str, table: type[BaseModel]) -> Iterator[str]:
    yield f"### {title if title[0] != '[' else f'`{title}`'}"
    rows = ["| key | type | unit | default | range | meaning |", "| --- | --- | --- | --- | --- | --- |"]
    yield "\n".join(rows + ["| " + " | ".join(_row(key, info)) + " |" for key, info in _keys(table)])
    if table is Training:
        keys = ", ".join(f"`{field.name}`" for field in fields(Regime))
        yield fill(
            f"A table `[training.by_dataset.NAME]` may have the keys {keys}; those that it leaves out are as in "
            "`[training]`. What `[training]` leaves out, too, is *as fitted*: as in the regime that the data set's "
            "curve and DQI were measured in, if they come with flmarket.",
            120, break_on_hyphens=False,
        )  # fmt: skip


def _keys(table: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the keys of a table: those of an inline table by their dotted names, sections not at all."""
    for name, info in table.model_fields.items():
        kind = bare(info.annotation)
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            yield prefix + name, info
        elif f"[{name}]" not in SECTIONS:
            yield from _keys(kind, f"{prefix}{name}.")


def _row(key: str, info: FieldInfo) -> tuple[str, ...]:
    extra = info.json_schema_extra
    unit = str(extra.get("unit", "")) if isinstance(extra, dict) else ""
    return f"`{key}`", _type(info), unit, _default(info), _range(info), info.description or ""


def _type(info: FieldInfo) -> str:
    kind = bare(info.annotation)
    if get_origin(kind) is Literal:
        return " or ".join(f"`{value_text(choice)}`" for choice in get_args(kind))
    if get_origin(kind) is dict:
        return "tables" if get_args(kind)[1] is TrainingOverride else "table"
    if get_origin(kind) is tuple:
        item = bare(get_args(kind)[0])
        return "tables" if item not in _TYPES else f"list of {_TYPES[item]}s"
    notes = [*info.metadata, *(note for part in get_args(info.annotation) for note in _notes(part))]
    return "name" if any(getattr(note, "pattern", None) == NAME_PATTERN for note in notes) else _TYPES[kind]


def _notes(part: Any) -> Iterator[Any]:
    """Yield what qualifies a part of a union, such as ``Name | None``."""
    for note in getattr(part, "__metadata__", ()):
        yield from getattr(note, "metadata", ())


def _default(info: FieldInfo) -> str:
    value = default(info)
    if value is None:
        return "required"
    if absent(info):
        return value
    if value == "" and info.default is None:
        return "absent"
    return f"`{value_text(value) if isinstance(info.default, str) else value}`"


def _range(info: FieldInfo) -> str:
    kind = bare(info.annotation)
    if get_origin(kind) is tuple:
        return "; ".join(filter(None, [_sizes(info, "items"), _numbers(item_limits(info), "each ")]))
    if get_origin(kind) is dict:
        return _sizes(info, "keys")
    return _numbers(limits(info)) or ("" if _type(info) == "name" else _sizes(info, "letters"))


def _numbers(words: list[str], prefix: str = "") -> str:
    if len(words) == 2 and words[0].startswith("at least ") and words[1].startswith("at most "):
        return prefix + " to ".join(word.split()[-1] for word in words)
    return prefix + ", ".join(words) if words else ""


def _sizes(info: FieldInfo, things: str) -> str:
    least = next((note.min_length for note in info.metadata if hasattr(note, "min_length")), 0)
    most = next((note.max_length for note in info.metadata if getattr(note, "max_length", None)), None)
    if most is None:
        return f"at least {least} {things.rstrip('s')}" if least else ""
    return f"{least} to {number(most)} {things}" if least else f"at most {number(most)} {things}"


if __name__ == "__main__":
    sys.exit(guarded(partial(renew_named, reference)))
