"""The keys of the scenario file, read from the JSON schema of its model: for the form, the reference and messages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from flmarket.core.names import NAME_PATTERN
from scenarios.file.problems import Path, number
from scenarios.file.schema import Scenario
from scenarios.file.toml import value_text

Schema = Mapping[str, Any]

_TYPES = {"integer": "integer", "number": "number", "string": "text", "object": "table", None: "any"}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table, or of a small table inside it."""

    path: tuple[str, ...]  # in its table: ("cost", "noise")
    schema: Schema
    required: bool

    @property
    def label(self) -> str:
        return ".".join(self.path)

    @property
    def description(self) -> str:
        return str(self.schema["description"])

    @property
    def unit(self) -> str:
        return str(self.schema.get("unit", ""))

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.schema.get("enum", ()))

    @property
    def names(self) -> str | None:
        """The kind of installed things that the key names: ``policy``."""
        return self.schema.get("names")

    @property
    def is_text(self) -> bool:
        return self.schema.get("type") == "string"

    @property
    def type(self) -> str:
        """The type in words: ``integer``, ``name``, ``list of numbers``, ``tables``."""
        if self.choices:
            return " or ".join(f"`{value_text(choice)}`" for choice in self.choices)
        if self.schema.get("pattern") == NAME_PATTERN:
            return "name"
        item = _items(self.schema)
        if "properties" in item or (self.schema.get("type") == "array" and item.get("type") == "object"):
            return "tables"
        if self.schema.get("type") == "array":
            return f"list of {_TYPES[item.get('type')]}s"
        return _TYPES[self.schema.get("type")]

    @property
    def default(self) -> str | None:
        """The default as it is typed: text without quotes, the rest as TOML; empty for no value, None if required.

        Where a value is found for a key that is absent, the words that say which.
        """
        if self.required:
            return None
        if "absent" in self.schema:
            return str(self.schema["absent"])
        value = self.schema["default"]
        if value is None:
            return ""
        return value if isinstance(value, str) else value_text(value)

    @property
    def range(self) -> str:
        """The limits in words: ``0 to 1``, ``at least 1``, ``1 to 100 items; each more than 0``."""
        match self.type, self.schema.get("type"):
            case "name", _:
                return ""
            case _, "array":
                each = _range(_items(self.schema), "minimum", "maximum")
                items = _range(self.schema, "minItems", "maxItems", "items")
                return "; ".join(filter(None, [items, f"each {each}" if each else ""]))
            case _, "object":
                return _range(self.schema, "minProperties", "maxProperties", "keys")
            case _, "string":
                return _range(self.schema, "minLength", "maxLength", "letters")
        return _range(self.schema, "minimum", "maximum")


def keys(table: Path = ()) -> Iterator[Key]:
    """Yield the keys of a table, given by its path; those of tables in it as dotted keys."""
    schema = schema_at(table)
    for name, part in (schema or {})["properties"].items():
        key = _flat(part)
        if "properties" in key:
            for inner in keys((*table, name)):
                yield Key((name, *inner.path), inner.schema, inner.required)
        else:
            yield Key((name,), key, name in (schema or {}).get("required", ()))


def departures(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a scenario that need no value but have one, other than their default.

    Those that nearly all files have are left out, too (``usual``).
    """
    data = scenario.model_dump(mode="json", exclude_none=True)
    named = {name: data.pop(name, ()) for name in ("services", "streams")}
    yield from _departures((), data)
    for name, tables in named.items():
        for i, table in enumerate(tables):
            for label, value in _departures((name, i), table):
                yield f"{name}.{table['name']}.{label}", value


def _departures(table: Path, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in keys(table):
        value = reduce(lambda found, part: found.get(part, {}), key.path, values)
        if not (key.required or "usual" in key.schema) and value not in (key.schema["default"], {}):
            yield key.label, value


def schema_at(path: Path) -> Schema | None:
    """Return the JSON schema of what stands at a path, empty for anything; None if nothing may stand there."""
    schema = _root()
    for part in path:
        if not schema:
            return schema
        found = schema.get("properties", {}).get(part, schema.get("additionalProperties", False))
        if isinstance(part, int):
            found = schema.get("items", False)
        if found is False:
            return None
        schema = {} if found is True else _flat(found)
    return schema


def value_at(data: Any, path: Path, absent: Any = None) -> Any:
    """Return what stands at a path of a scenario as TOML has it, valid or not; ``absent`` where nothing does."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return absent
    return data


@cache
def _root() -> Schema:
    return Scenario.model_json_schema()


def _flat(part: Schema) -> Schema:
    """Return a schema without references and without ``null``."""
    for option in part.get("anyOf", ()):
        if option.get("type") != "null":
            part = {**option, **part}
    return {**_root()["$defs"][part["$ref"].rpartition("/")[2]], **part} if "$ref" in part else part


def _items(schema: Schema) -> Schema:
    """Return the schema of what a list or a table of anything holds; empty for another schema."""
    found = schema.get("items") or schema.get("additionalProperties")
    return _flat(found) if isinstance(found, Mapping) else {}


def _range(schema: Schema, low: str, high: str, things: str = "") -> str:
    """Return limits in words; those of a count are of ``things``."""
    least, most = schema.get(low), schema.get(high)
    above, below = (schema.get(f"exclusive{name.capitalize()}") for name in (low, high))
    if least is not None and most is not None:
        words = f"{_number(least)} to {_number(most)}"
    else:
        limits = {"at least": least, "more than": above, "at most": most, "less than": below}
        words = ", ".join(f"{word} {_number(limit)}" for word, limit in limits.items() if limit is not None)
    return f"{words} {things}".strip() if words else ""


def _number(limit: float) -> str:
    return number(int(limit)) if float(limit).is_integer() else number(limit)
