"""Pickles of plain data, read without unpickling: dictionaries, lists, tuples, numbers and text, and nothing else.

A pickle is a program, and unpickling runs it: one from the internet may do anything. Here its instructions are read
(``pickletools.genops``), those that only put plain data together are followed, and all others are refused: whatever
would import, call or build an object.
"""

import pickletools
from collections.abc import Callable
from typing import Any, NoReturn

_MARK = object()


class PickleError(ValueError):
    """A pickle holds something else than plain data, or is damaged."""


def loads(content: bytes) -> Any:
    """Return the plain data of a pickle.

    Raises:
        PickleError: it holds something else, or is damaged.
    """
    stack: list[Any] = []
    memo: dict[object, Any] = {}
    try:
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            if name == "STOP":
                [value] = stack
                return value
            if name in _SKIPPED:
                continue
            if name in _PUSHED:
                stack.append(_PUSHED[name](argument))
            elif name in _COLLECTED:
                _COLLECTED[name](stack)
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
                memo[argument] = stack[-1]
            elif name in ("GET", "BINGET", "LONG_BINGET"):
                stack.append(memo[argument])
            else:
                _refuse(name, argument)
    except PickleError:
        raise
    except Exception as error:  # genops raises whatever its decoders do
        raise PickleError(f"is not a whole pickle: {error}") from error
    raise PickleError("is not a whole pickle: it has no end")


def _refuse(name: str, argument: Any) -> NoReturn:
    what = f" {argument!r}" if isinstance(argument, str) else ""
    raise PickleError(f"holds more than plain data: its instruction {name}{what[:80]} is not followed")


def _above_mark(stack: list[Any]) -> list[Any]:
    """Take everything above the last mark, and the mark, off the stack."""
    place = next(at for at in range(len(stack) - 1, -1, -1) if stack[at] is _MARK)
    items = stack[place + 1 :]
    del stack[place:]
    return items


def _items(stack: list[Any], items: list[Any]) -> None:
    """Put keys and values, which alternate, into the dictionary on top of the stack."""
    if type(stack[-1]) is not dict or len(items) % 2:
        raise PickleError("is not a whole pickle: something else than a dictionary gets items")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) not in (int, float, str, bytes, bool):
            raise PickleError(f"has a key of type {type(key).__name__}; keys must be numbers or text")
        stack[-1][key] = value


def _dict(stack: list[Any]) -> None:
    items = _above_mark(stack)
    stack.append({})
    _items(stack, items)


def _extend(stack: list[Any], items: list[Any]) -> None:
    if type(stack[-1]) is not list:
        raise PickleError("is not a whole pickle: something else than a list gets items")
    stack[-1].extend(items)


def _tuple_of(count: int) -> Callable[[list[Any]], None]:
    def collect(stack: list[Any]) -> None:
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return collect


_SKIPPED = ("PROTO", "FRAME")

_PUSHED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        (
            *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING"),
            *("BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        ),
        lambda argument: argument,
    ),
    "MARK": lambda _: _MARK,
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
}
"""What puts one value on the stack, made of the instruction's argument."""

_COLLECTED: dict[str, Callable[[list[Any]], None]] = {
    "SETITEM": lambda stack: _items(stack, [stack.pop(), stack.pop()][::-1]),
    "SETITEMS": lambda stack: _items(stack, _above_mark(stack)),
    "APPEND": lambda stack: _extend(stack, [stack.pop()]),
    "APPENDS": lambda stack: _extend(stack, _above_mark(stack)),
    "DICT": _dict,
    "LIST": lambda stack: stack.append(_above_mark(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_above_mark(stack))),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
}
"""What puts values on the stack together."""
