"""The mechanisms by name: those that come with flmarket, and plug-ins (entry-point group ``flmarket.mechanisms``)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from des.mechanism import Mechanism
from flmarket.core.errors import InputError
from flmarket.core.options import created
from flmarket.core.plugins import Registry, subclass_problem

DEFAULT = "pay-as-offered"
"""The paper's."""


BUILTIN: Mapping[str, str] = {
    DEFAULT: "des.pay_as_offered:PayAsOffered",
    "uniform-price": "des.uniform_price:UniformPrice",
    "posted-price": "des.posted_price:PostedPrice",
    "proportional-share": "des.proportional_share:ProportionalShare",
    "iterated": "des.iterated:Iterated",
    "vcg": "des.vcg:VCG",
    "fair-queue": "des.fair_queue:FairQueue",
    "score-auction": "des.score_auction:ScoreAuction",
}
"""The mechanisms that come with flmarket, as module:class; imported when used."""


def _problem(thing: Any) -> str | None:
    return subclass_problem(thing, Mechanism, "flmarket.Mechanism")


MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism", "flmarket.mechanisms", BUILTIN, _problem)


M = TypeVar("M", bound=type[Mechanism])


def mechanism(name: str) -> Callable[[M], M]:
    """Return a class decorator that registers a mechanism: ``@mechanism("second-price")``.

    Raises:
        PluginError: the name is taken or invalid, or the class is not a subclass of ``Mechanism``.
    """
    return MECHANISMS.decorator(name)


def comes_with_flmarket(mechanism: Mechanism) -> bool:
    """Return whether a mechanism is one of flmarket's, whose clearings need no check; not of a plug-in."""
    cls = type(mechanism)
    return f"{cls.__module__}:{cls.__qualname__}" in BUILTIN.values()


class MechanismOptionsError(InputError):
    """A scenario's ``market.options`` are not what the mechanism takes."""


def create(name: str, options: Mapping[str, Any] | None = None) -> Mechanism:
    """Return a new mechanism, for one market.

    Raises:
        UnknownPluginError, PluginError: there is none of that name, or it cannot be used.
        MechanismOptionsError: it does not take these options, or fails with them.
    """
    return created(MECHANISMS.load(name), options, f"mechanism {name!r}", MechanismOptionsError)
