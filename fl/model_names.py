"""The models that services can train, by name. Light: checking a scenario needs the names, not torch."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fl.plugins import Registry

if TYPE_CHECKING:
    from fl.models import ModelFactory

BUILTIN: Mapping[str, str] = {"cnn": "fl.models:cnn", "mlp": "fl.models:mlp"}
"""The models that come with flmarket, as module:function; imported when used."""


def _problem(found: Any) -> str | None:
    return None if callable(found) else f"{found!r} cannot be called"


MODELS: "Registry[ModelFactory]" = Registry("model", "flmarket.models", BUILTIN, _problem)
"""All models, by name."""

F = TypeVar("F", bound=Callable[..., Any])


def model(name: str) -> Callable[[F], F]:
    """Return a decorator that registers a model: ``@model("tiny")``; see ``fl.models`` for what it must be.

    Raises:
        PluginError: the name is taken or invalid, or what is decorated cannot be called.
    """
    return MODELS.decorator(name)
