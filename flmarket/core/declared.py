"""Options that are declared once, as ``Annotated[type, Ge(1), Le(9), Doc("A sentence.")]``: keys, settings, arguments.

The fields of a dataclass that are declared so become the parameters of a Python function, with its docstring
(``arguments_of``), and a command's options (``flmarket.cli.arguments.options_of``). ``check`` refuses wrong values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import wraps
from inspect import cleandoc, signature
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar, get_args, get_origin

from annotated_doc import Doc
from annotated_types import Ge

from flmarket.core.errors import InputError

Arguments = ParamSpec("Arguments")
Options = TypeVar("Options")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a number, such as ``seconds``; stands beside its limits and its ``Doc``."""

    name: str


class Declared(NamedTuple):
    """One option."""

    name: str
    type: Any  # a forward reference stays one
    least: Any  # None where there is no limit
    default: Any
    sentence: str

    @property
    def label(self) -> str:
        """Its name in a form: the beginning of its sentence."""
        return self.sentence.partition(",")[0].rstrip(".").lower()


def declared(options: Any) -> Iterator[Declared]:
    """Yield the options that the fields of a dataclass declare."""
    for field in fields(options):
        if get_origin(field.type) is Annotated:
            kind, *notes = get_args(field.type)
            least = next((note.ge for note in notes if isinstance(note, Ge)), None)
            [sentence] = [sentence_of(note) for note in notes if isinstance(note, Doc)]
            yield Declared(field.name, kind, least, field.default, sentence)


def sentence_of(note: Doc) -> str:
    """Return what a note says on one line, on however many it is written."""
    return " ".join(note.documentation.split())


def check(options: Any, of: type) -> None:
    """Refuse a value of the fields that a class declares which is not of the type, or beyond its limits."""
    for field in fields(of):
        value = getattr(options, field.name)
        if value is not field.default:  # pydantic takes a millisecond to look at each
            check_value(field.name, field.type, value)


def check_value(name: str, kind: Any, value: object) -> None:
    """Refuse a value that is not of the type that is declared for it, or beyond its limits."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError  # not before there are values to check

    try:
        TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"].replace("Input should be ", "must be ")
        raise InputError(f"{name} = {value!r}: {message}") from None


def arguments_of(
    options: Callable[Arguments, Options],
) -> Callable[[Callable[[Options], Result]], Callable[Arguments, Result]]:
    """Decorate a function of one object of declared options: it takes them one by one, and its docstring lists them."""

    def decorate(function: Callable[[Options], Result]) -> Callable[Arguments, Result]:
        apart, by_name = signature(options), {option.name: option for option in declared(options)}

        @wraps(function)
        def taking(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            try:
                apart.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            return function(options(*args, **kwargs))

        kinds = {name: getattr(option.type, "__forward_arg__", option.type) for name, option in by_name.items()}
        taking.__signature__ = apart.replace(  # type: ignore[attr-defined]
            parameters=[parameter.replace(annotation=kinds[name]) for name, parameter in apart.parameters.items()],
            return_annotation=signature(function).return_annotation,
        )
        arguments = "".join(f"    {name}: {by_name[name].sentence}\n" for name in apart.parameters)
        summary, raises, errors = cleandoc(function.__doc__ or "").partition("Raises:")
        taking.__doc__ = f"{summary.rstrip()}\n\nArgs:\n{arguments}\n{raises}{errors}"
        return taking

    return decorate
