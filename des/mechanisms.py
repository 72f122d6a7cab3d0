"""The mechanisms by name: those that come with flmarket, and plug-ins (entry-point group ``flmarket.mechanisms``)."""

from collections.abc import Mapping
from typing import Any

from des.mechanism import Mechanism
from fl.errors import InputError
from fl.plugins import Registry

DEFAULT = "pay-as-offered"
"""The paper's."""


def _problem(thing: Any) -> str | None:
    if isinstance(thing, type) and issubclass(thing, Mechanism):
        return None
    return f"{thing!r} is not a subclass of des.mechanism.Mechanism"


MECHANISMS: Registry[type[Mechanism]] = Registry(
    "mechanism", "flmarket.mechanisms", {DEFAULT: "des.pay_as_offered:PayAsOffered"}, _problem
)


class MechanismOptionsError(InputError):
    """A scenario's ``market.options`` are not what the mechanism takes."""


def create(name: str, options: Mapping[str, Any] | None = None) -> Mechanism:
    """Return a new mechanism, for one market.

    Raises:
        UnknownPluginError, PluginError: there is none of that name, or it cannot be used.
        MechanismOptionsError: it does not take these options.
    """
    mechanism = MECHANISMS.load(name)
    try:
        return mechanism(**(options or {}))
    except (TypeError, ValueError) as error:
        raise MechanismOptionsError(f"mechanism {name!r}: {error}") from error
