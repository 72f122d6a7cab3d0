"""The options of a plug-in: the keyword arguments of its class, checked before it is created."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from math import inf
from typing import Any, TypeGuard

from flmarket.core.errors import InputError
from flmarket.core.names import suggest

_NAMED = frozenset({Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD})
_CHECKPOINT = "checkpoint"  # the one keyword that a scenario gives by a key of its own


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value of a scenario file is a number: ``true`` and texts are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_range(
    name: str, value: object, low: float, high: float = inf, *, above: bool = False, below: bool = False
) -> float:
    """Return an option that must be a number from ``low`` to ``high``, or strictly ``above`` or ``below`` them."""
    excluded = {inf, low if above else None, high if below else None}
    if not is_number(value) or not low <= value <= high or value in excluded:
        least = f"above {low:g}" if above else f"of at least {low:g}"
        most = "" if high == inf else f" and {'below' if below else 'at most'} {high:g}"
        limits = f"{least}{most}" if above or below or high == inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} must be a {'finite ' if high == inf else ''}number {limits}, not {value!r}")
    return float(value)


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return an option that must be a whole number of at least ``low``, and at most ``high``, if there is a limit."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be a whole number {limits}, not {value!r}")
    return value


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """Return an option that must be one of some words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(choices)}, not {value!r}")
    return str(value)


class OptionsError(InputError):
    """The options that a scenario gives a policy, a mechanism or a behaviour are not what it takes."""


def option_problems(thing: Callable[..., Any], options: Mapping[str, Any], given: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each option that a plug-in does not take, or lacks, with what is wrong: ``takes no option 'x'; ...``."""
    try:
        parameters = list(signature(thing).parameters.values())
    except ValueError:  # not written in Python; creating it will show what is wrong
        return
    accepted = {it.name: it for it in parameters[given:] if it.kind in _NAMED}
    if all(it.kind is not Parameter.VAR_KEYWORD for it in parameters):
        known = [name for name in accepted if name != _CHECKPOINT]
        for name in options:
            if name == _CHECKPOINT and name not in accepted:
                yield name, "takes no checkpoint"
            elif name not in accepted:
                yield name, f"takes no option {name!r}{suggest(name, known) or '; it has none'}"
    for name, parameter in accepted.items():
        if parameter.default is Parameter.empty and name not in options:
            yield name, f"needs a {name}" if name == _CHECKPOINT else f"needs the option {name!r}"


def defaults(thing: Callable[..., Any] | None, given: int = 0) -> dict[str, Any]:
    """Return the options of a plug-in that have defaults, but for its checkpoint."""
    try:
        parameters = list(signature(thing).parameters.values())[given:] if thing is not None else []
    except ValueError:  # not written in Python
        return {}
    named = {it.name: it.default for it in parameters if it.kind in _NAMED and it.name != _CHECKPOINT}
    return {name: value for name, value in named.items() if value is not Parameter.empty}
