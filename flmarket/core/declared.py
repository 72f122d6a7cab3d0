"""Options that are declared once, as the fields of a dataclass: type, limits, default, sentence.

Python functions take their signature and docstring from them (``told_by``), commands their options
(``flmarket.cli.arguments.taking``), and both the checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import wraps
from inspect import Signature, cleandoc, signature
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar, cast, get_args, get_origin

from annotated_doc import Doc

from flmarket.core.errors import InputError

Told = ParamSpec("Told")
Options = TypeVar("Options")
Result = TypeVar("Result")


class Limits(NamedTuple):
    """The lowest and the highest value of an option."""

    least: float | None = None
    most: float | None = None


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
    """Yield the options of a dataclass whose fields are ``Annotated[type, Doc(sentence)]``, some with ``Limits``."""
    for field in fields(options):
        if get_origin(field.type) is Annotated:
            kind, *notes = get_args(field.type)
            sentence = next(note.documentation for note in notes if isinstance(note, Doc))
            yield Declared(field.name, kind, _limits(field.type).least, field.default, sentence)


def _limits(kind: Any) -> Limits:
    return next((note for note in get_args(kind) if isinstance(note, Limits)), Limits())


def check(options: Any, of: type) -> None:
    """Refuse a value of the fields that a class declares which is not of the type, or beyond its limits."""
    from pydantic import ConfigDict, Field, TypeAdapter, ValidationError  # not before there are values to check

    for field in fields(of):
        value, limits = getattr(options, field.name), _limits(field.type)
        if value is field.default:  # pydantic takes a millisecond to look at each
            continue
        kind = cast(Any, Annotated[cast(Any, field.type), Field(ge=limits.least, le=limits.most)])
        try:
            TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"].replace("Input should be ", "must be ")
            raise InputError(f"{field.name} = {value!r}: {message}") from None


def told_by(options: Callable[Told, Options]) -> Callable[[Callable[[Options], Result]], Callable[Told, Result]]:
    """Decorate a function of one object of declared options: it takes them one by one, and its docstring lists them."""

    def decorate(function: Callable[[Options], Result]) -> Callable[Told, Result]:
        told = signature(options)

        @wraps(function)
        def called(*given: Told.args, **named: Told.kwargs) -> Result:
            try:
                told.bind(*given, **named)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            return function(options(*given, **named))

        own = {it.name: it for it in declared(options)}
        parameters = [
            it.replace(annotation=getattr(own[it.name].type, "__forward_arg__", own[it.name].type))
            for it in told.parameters.values()
        ]
        called.__signature__ = Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=signature(function).return_annotation
        )
        arguments = "".join(f"    {it.name}: {own[it.name].sentence}\n" for it in parameters)
        summary, raises, errors = cleandoc(function.__doc__ or "").partition("Raises:")
        called.__doc__ = f"{summary.rstrip()}\n\nArgs:\n{arguments}\n{raises}{errors}"
        return called

    return decorate
