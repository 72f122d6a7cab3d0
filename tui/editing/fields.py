"""The form's fields, made from the scenario schema: each key with its description, limits and default."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scenarios.file.keys import bare, default, limits
from scenarios.file.problems import Path


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
    from des.mechanism import MECHANISMS

    return MECHANISMS.names()


def _behaviours() -> Sequence[str]:
    from des.behaviour import BEHAVIOURS

    return BEHAVIOURS.names()


CHOICES: dict[str, Callable[[], Sequence[str]]] = {
    "dataset": _datasets,
    "policy": _policies,
    "model": _models,
    "mechanism": _mechanisms,
    "kind": _behaviours,
}
"""Keys whose values are the names of what is installed."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of the form."""

    path: Path  # its path, relative to its table
    description: str  # the schema's description, with the limits
    default: str | None  # as TOML, or None for a required key
    choices: tuple[str, ...]  # the values to choose from; empty if the user types a value
    is_text: bool  # whether the key holds a string, which is typed without quotes

    @property
    def label(self) -> str:
        return ".".join(map(str, self.path))


def fields(model: type[BaseModel], prefix: Path = ()) -> Iterator[Field]:
    """Yield the fields of a table and of the tables in it."""
    for name, info in model.model_fields.items():
        kind = bare(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, (*prefix, name))
            continue
        choices = tuple(get_args(kind)) if get_origin(kind) is Literal else ()
        if name in CHOICES:
            choices = tuple(CHOICES[name]())
        is_text = kind is str or bool(choices)
        yield Field((*prefix, name), _describe(info), default(info), choices, is_text)


def _describe(info: FieldInfo) -> str:
    text, found = info.description or "", limits(info)
    return f"{text} ({', '.join(found)})" if found else text
