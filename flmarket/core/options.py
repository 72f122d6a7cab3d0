"""The options of a plug-in: the keyword arguments of its class, checked before it is created."""

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from flmarket.core.errors import InputError
from flmarket.core.names import suggest
from flmarket.core.plugin_errors import definition, place, plugin_code

Thing = TypeVar("Thing")

_NAMED = frozenset({Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD})
_CHECKPOINT = "checkpoint"  # the one keyword that a scenario gives by a key of its own


def is_number(value: object) -> bool:
    """Whether a value of a scenario file is a number: ``true`` and texts are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """Whether a value of a scenario file is a whole number of at least 1."""
    return is_number(value) and isinstance(value, int) and value >= 1


def in_range(name: str, value: object, low: float, high: float) -> float:
    """Return an option that must be a number from ``low`` to ``high``."""
    if not is_number(value) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def option_problems(thing: Callable[..., Any], options: Mapping[str, Any], given: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each option that a plug-in does not take, or lacks, with what is wrong: ``takes no option 'x'; ...``."""
    try:
        parameters = list(signature(thing).parameters.values())
    except ValueError:  # not written in Python; creating it will show what is wrong
        return
    own = {it.name: it for it in parameters[given:] if it.kind in _NAMED}
    if all(it.kind is not Parameter.VAR_KEYWORD for it in parameters):
        known = [name for name in own if name != _CHECKPOINT]
        for name in options:
            if name == _CHECKPOINT and name not in own:
                yield name, "takes no checkpoint"
            elif name not in own:
                yield name, f"takes no option {name!r}{suggest(name, known) or '; it has none'}"
    for name, parameter in own.items():
        if parameter.default is Parameter.empty and name not in options:
            yield name, f"needs a {name}" if name == _CHECKPOINT else f"needs the option {name!r}"


def created(
    thing: Callable[..., Thing],  # its class
    options: Mapping[str, Any] | None,  # keyword arguments; None for none
    what: str,  # what messages call it
    error: type[InputError],  # raised where it does not take the options, or fails with them
    *given: object,  # the arguments that flmarket itself passes before them
) -> Thing:
    """Create a plug-in with the options that a scenario gives it."""
    for _, problem in option_problems(thing, options or {}, given=len(given)):
        raise error(f"{what} {problem}")
    with plugin_code(what, error):
        try:
            return thing(*given, **(options or {}))
        except (TypeError, ValueError) as refused:
            where = place(refused) or definition(getattr(thing, "__init__", thing))
            raise error(f"{what}: {refused}" + (f" ({where})" if where else "")) from refused
