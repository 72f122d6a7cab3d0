"""Options of a plug-in's class are checked before it is created."""

from collections.abc import Callable
from typing import Any

import pytest

from flmarket.core.plugin_options import option_problems


class Fixed:
    def __init__(self, context: object, size: int, *, shift: float = 0.0) -> None: ...


class Open:
    def __init__(self, context: object, size: int, **rest: object) -> None: ...


class Learned:
    def __init__(self, context: object, checkpoint: str) -> None: ...


class Plain:
    def __init__(self, context: object) -> None: ...


@pytest.mark.parametrize(
    ("thing", "options", "problems"),
    [
        (Fixed, {"size": 1, "shift": 2.0}, []),
        (Fixed, {"size": 1, "shfit": 2.0}, [("shfit", "takes no option 'shfit'; did you mean 'shift'?")]),
        (Fixed, {"size": 1, "x": 2.0}, [("x", "takes no option 'x'; choose from size, shift")]),
        (Fixed, {}, [("size", "needs the option 'size'")]),
        (Fixed, {"size": 1, "checkpoint": "a"}, [("checkpoint", "takes no checkpoint")]),
        (Fixed, {"size": 1, "context": None}, [("context", "takes no option 'context'; choose from size, shift")]),
        (Open, {"size": 1, "x": 2.0, "checkpoint": "a"}, []),
        (Open, {"x": 2.0}, [("size", "needs the option 'size'")]),
        (Learned, {"checkpoint": "a"}, []),
        (Learned, {}, [("checkpoint", "needs a checkpoint")]),
        (Learned, {"checkpoint": "a", "x": 1}, [("x", "takes no option 'x'; it has none")]),
        (Plain, {"x": 1}, [("x", "takes no option 'x'; it has none")]),
        (dict, {"x": 1}, []),
    ],
)
def test_what_is_not_taken_and_what_is_missing_is_named(
    thing: Callable[..., Any], options: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    """Of a class that is not written in Python, creating it will show what is wrong."""
    assert list(option_problems(thing, options, given=1)) == problems


def test_flmarket_passes_no_arguments_unless_it_says_so() -> None:
    assert list(option_problems(Fixed, {"context": 1, "size": 1})) == []
