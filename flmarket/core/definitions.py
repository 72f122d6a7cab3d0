"""Digests of what was defined in a notebook or script: a class, a function or a network, with what it uses.

Another definition has another digest. What cannot be read has another one each time, so that it is never taken as the
same as before.
"""

import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import uuid4

import numpy as np

from flmarket.core.plugin_errors import is_own

_PLAIN = int | float | complex | str | bytes | None

Seen = dict[int, tuple[int, object]]
"""The things so far, by id: each with its number, and kept, so that no other one gets its id."""


def digest(*things: object) -> str:
    """Return the SHA-256 of what defines things.

    * Of the user's own classes and functions: their source text, and what they use from around them.
    * Of networks of torch: their structure and all tensors of their state.
    * Of what a package defines: its name. Of arrays, numbers and words: their values. Of other objects: what a pickle
      of them would hold, whatever the order of sets.
    """
    try:
        parts = list(_all({}, *things))
    except Exception:  # typed at a prompt, or an open file, say
        parts = [uuid4().bytes]
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()


def _all(seen: Seen, *things: object) -> Iterator[bytes]:
    for thing in things:
        yield type(thing).__qualname__.encode()
        yield from _parts(thing, seen)


def _parts(thing: Any, seen: Seen) -> Iterator[bytes]:
    torch = sys.modules.get("torch")
    match thing:
        case _ if isinstance(thing, _PLAIN):
            yield repr(thing).encode()
        case _ if id(thing) in seen:
            yield str(seen[id(thing)][0]).encode()
        case FunctionType() | type():
            seen[id(thing)] = len(seen), thing
            yield from _code(thing, seen)
        case MethodType():
            yield from _all(seen, thing.__func__, thing.__self__)
        case partial():
            yield from _all(seen, thing.func, thing.args, thing.keywords)
        case list() | tuple():
            yield from _all(seen, len(thing), *thing)
        case dict():
            yield from _all(seen, len(thing), *thing, *thing.values())
        case set() | frozenset():
            yield from sorted(digest(it).encode() for it in thing)
        case ModuleType():
            yield thing.__name__.encode()
        case np.ndarray() if not thing.dtype.hasobject:
            yield from (str((thing.dtype, thing.shape)).encode(), thing.tobytes())
        case _ if torch is not None and isinstance(thing, torch.Tensor):
            yield from _parts(thing.detach().cpu().numpy(), seen)
        case _ if torch is not None and isinstance(thing, torch.nn.Module):
            kinds = dict.fromkeys(type(part) for part in thing.modules())
            yield from _all(seen, *kinds, repr(thing), dict(thing.state_dict()))
        case _:
            seen[id(thing)] = len(seen), thing
            yield from _all(seen, type(thing), thing.__reduce_ex__(4))


def _code(thing: Any, seen: Seen) -> Iterator[bytes]:
    """Yield what defines a class or a function."""
    yield f"{thing.__module__}.{thing.__qualname__}".encode()
    if not _own(thing):
        return
    yield inspect.getsource(thing).encode()
    functions = [thing]
    if isinstance(thing, type):
        members = {name: it for name, it in vars(thing).items() if not name.startswith(("__", "_abc_"))}
        functions = [it for it in map(_function, members.values()) if it is not None]
        values = {name: it for name, it in members.items() if not hasattr(type(it), "__get__")}
        yield from _all(seen, thing.__bases__, values)
    for function in functions:
        yield from _all(seen, function.__defaults__, function.__kwdefaults__, _around(function))


def _own(thing: Any) -> bool:
    """Return whether the user defined a class or function, not a package."""
    if isinstance(thing, FunctionType):
        return is_own(thing.__code__.co_filename)
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    return thing.__module__ == "__main__" or (file is not None and is_own(file))


def _function(member: Any) -> FunctionType | None:
    """Return the function in a method, class method, static method or property; None for other members of a class."""
    found = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
    return found if isinstance(found, FunctionType) else None


def _around(function: FunctionType) -> dict[str, Any]:
    """Return what a function, and functions inside it, use from around it, by name."""
    names, codes = set[str](), [function.__code__]
    for code in codes:
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found[name] = cell.cell_contents
    return dict(sorted(found.items()))
