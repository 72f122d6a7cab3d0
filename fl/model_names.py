"""The models that services can train, by name. Light: checking a scenario needs the names, not torch."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fl.dataset import Shape
from flmarket.core.errors import InputError
from flmarket.core.plugins import Registry

if TYPE_CHECKING:
    from fl.models import ModelFactory

BUILTIN: Mapping[str, str] = {"cnn": "fl.models:cnn", "mlp": "fl.models:mlp", "resnet8": "fl.resnet:resnet8"}
"""The models that come with flmarket, as module:function; imported when used."""


CNN_SHORTEST = 8
"""Pixels of a side: the ``cnn`` sees at least 16 x 16, of a smaller image mostly the border that fills these up."""


class ModelError(InputError):
    """A built-in model does not fit the images; the message says what to do."""


def require_fit(name: str, shape: Shape) -> None:
    """Raise if images are too small for a built-in model.

    Raises:
        ModelError: they are.
    """
    if name == "cnn" and min(shape.height, shape.width) < CNN_SHORTEST:
        raise ModelError(
            f"model 'cnn' needs images of at least {CNN_SHORTEST} x {CNN_SHORTEST} pixels, not {shape}; enlarge them, "
            'or choose model = "mlp" or "resnet8"'
        )


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
