"""The client behaviours by name: those that come with flmarket, and plug-ins (group ``flmarket.behaviours``)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from des.behaviour import Behaviour
from flmarket.core.errors import InputError
from flmarket.core.options import created
from flmarket.core.plugins import Registry, subclass_problem

TRUTHFUL = "truthful"
"""The default: clients bid their costs, as in the paper."""


BUILTIN: Mapping[str, str] = {
    TRUTHFUL: "des.behaviour:Truthful",
    "markup": "des.markup:Markup",
    "adaptive": "des.adaptive:Adaptive",
    "misreport": "des.misreport:Misreport",
    "ring": "des.ring:Ring",
}
"""The behaviours that come with flmarket, as module:class; imported when used."""


def _problem(thing: Any) -> str | None:
    return subclass_problem(thing, Behaviour, "flmarket.Behaviour")


BEHAVIOURS: Registry[type[Behaviour]] = Registry("behaviour", "flmarket.behaviours", BUILTIN, _problem)


B = TypeVar("B", bound=type[Behaviour])


def behaviour(name: str) -> Callable[[B], B]:
    """Return a class decorator that registers a client behaviour: ``@behaviour("greedy")``.

    Raises:
        PluginError: the name is taken or invalid, or the class is not a subclass of ``Behaviour``.
    """
    return BEHAVIOURS.decorator(name)


class BehaviourOptionsError(InputError):
    """A scenario's ``clients.behaviour.options`` are not what the behaviour takes."""


def create(name: str, options: Mapping[str, Any] | None = None) -> Behaviour:
    """Return a new behaviour, for one market.

    Raises:
        UnknownPluginError, PluginError: there is none of that name, or it cannot be used.
        BehaviourOptionsError: it does not take these options, or fails with them.
    """
    return created(BEHAVIOURS.load(name), options, f"behaviour {name!r}", BehaviourOptionsError)
