"""The form's fields, made from the scenario schema: each key with its description, limits and default."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scenarios.file.problems import Path, number
from scenarios.file.toml_text import value_text


def _datasets() -> Sequence[str]:
    from fl.datasets import names

    return names()


def _policies() -> Sequence[str]:
    from learning.policy import names

    return names()


def _models() -> Sequence[str]:
    from fl.model_names import MODELS

    return MODELS.names()


def _mechanisms() -> Sequence[str]:
    from des.mechanisms import MECHANISMS

    return MECHANISMS.names()


CHOICES: dict[str, Callable[[], Sequence[str]]] = {
    "dataset": _datasets,
    "policy": _policies,
    "model": _models,
    "mechanism": _mechanisms,
}
"""Keys whose values are the names of what is installed."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of the form.

    Attributes:
        path: its path, relative to its table.
        description: the schema's description, with the limits.
        default: as TOML, or None for a required key.
        choices: the values to choose from; empty if the user types a value.
        is_text: whether the key holds a string, which is typed without quotes.
    """

    path: Path
    description: str
    default: str | None
    choices: tuple[str, ...]
    is_text: bool

    @property
    def label(self) -> str:
        """The key as it is written in a scenario file."""
        return ".".join(map(str, self.path))


def fields(model: type[BaseModel], prefix: Path = ()) -> Iterator[Field]:
    """Yield the fields of a table and of the tables in it."""
    for name, info in model.model_fields.items():
        kind = _bare(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, (*prefix, name))
            continue
        choices = tuple(get_args(kind)) if get_origin(kind) is Literal else ()
        if name in CHOICES:
            choices = tuple(CHOICES[name]())
        is_text = kind is str or bool(choices)
        yield Field((*prefix, name), _describe(info), _default(info), choices, is_text)


def _bare(annotation: Any) -> Any:
    """Return a type without ``Annotated`` and ``None``."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(part for part in get_args(annotation) if part is not type(None))
        else:
            return annotation


def _describe(info: FieldInfo) -> str:
    limits = [*info.metadata]
    if get_origin(info.annotation) in (Union, UnionType):
        limits += [note for part in get_args(info.annotation) for note in getattr(part, "__metadata__", ())]
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    found = []
    for note in limits:
        inner = [note, *getattr(note, "metadata", ())]
        for part in inner:
            found += [f"{word} {limit(getattr(part, key))}" for key, word in words.items() if hasattr(part, key)]
    text = info.description or ""
    return f"{text} ({', '.join(dict.fromkeys(found))})" if found else text


def limit(value: float) -> str:
    """Write a limit; a whole one with separated thousands."""
    return number(int(value)) if float(value).is_integer() and abs(value) < 1e15 else number(value)


def _default(info: FieldInfo) -> str | None:
    if info.is_required():
        return None
    value = info.get_default(call_default_factory=True)
    if value is None:
        return ""
    return value if isinstance(value, str) else value_text(value)
