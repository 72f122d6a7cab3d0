"""Digests of what was defined in a notebook or script: a class, a function or a network, with what it uses.

Another definition has another digest. What cannot be read has none: whether it is the same as before, nobody can tell.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec, resolve_name
from itertools import chain
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from flmarket.core.installation import PACKAGES
from flmarket.core.plugin_errors import describe, is_own

_PLAIN = int | float | complex | str | bytes | None


class NoDigestError(Exception):
    """What defines something cannot be read; the message says why."""


Seen = dict[int, tuple[int, object]]
"""The things so far, by id: each with its number, and kept, so that no other one gets its id."""


def recorded(*things: object, otherwise: str) -> dict[str, str]:
    """Return what is recorded of things: their digest, or another one, and why they cannot be read."""
    try:
        return {"sha256": digest(*things)}
    except NoDigestError as error:
        return {"sha256": otherwise, "unreadable": str(error)}


def digest(*things: object) -> str:
    """Return the SHA-256 of what defines things.

    * Of the user's own classes and functions: their source text, and what they use from around them.
    * Of networks of torch: their structure and all tensors of their state.
    * Of modules, and of what is imported inside of functions: the text of those that are the user's own; see
      ``modules``.
    * Of what a package defines: its name. Of arrays, numbers and words: their values. Of other objects: what a pickle
      of them would hold, whatever the order of sets.

    Raises:
        NoDigestError: something was typed at a prompt, or is an open file, say.
    """
    try:
        parts = list(_all({}, *things))
    except NoDigestError:
        raise
    except Exception as error:
        raise NoDigestError(describe(error)) from error
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8) + part)
    return sha.hexdigest()


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
            yield from _imports(modules([thing.__name__]), seen)
        case np.ndarray() if not thing.dtype.hasobject:
            yield from (str((thing.dtype, thing.shape)).encode(), thing.tobytes())
        case _ if torch is not None and isinstance(thing, torch.Tensor):
            yield from _parts(thing.detach().cpu().numpy(), seen)
        case _ if torch is not None and isinstance(thing, torch.nn.Module):
            kinds = dict.fromkeys(type(part) for part in thing.modules())
            yield from _all(seen, *kinds, repr(thing), dict(thing.state_dict()))
        case _ if callable(thing) and hasattr(thing, "__wrapped__"):  # by functools.cache, say
            yield from _all(seen, thing.__wrapped__)
        case _:
            seen[id(thing)] = len(seen), thing
            yield from _all(seen, type(thing), thing.__reduce_ex__(4))


def _code(thing: Any, seen: Seen) -> Iterator[bytes]:
    """Yield what defines a class or a function."""
    yield f"{thing.__module__}.{thing.__qualname__}".encode()
    if not _own(thing):
        yield from _imports(modules([thing.__module__ or ""]), seen)
        return
    if isinstance(thing, type):
        members = {name: it for name, it in vars(thing).items() if not name.startswith(("__", "_abc_"))}
        values = {name: it for name, it in members.items() if not hasattr(type(it), "__get__")}
        text = _text(thing)  # there is none of what type() made: then it is its members alone
        functions = [it for member in vars(thing).values() for it in _functions(member)]
        # Of methods that Python wrote, such as those of a data class, the text of the class is all there is.
        yield from _all(seen, text, thing.__bases__, values, [it for it in functions if not text or _text(it)])
    else:
        text = inspect.getsource(thing)
        if thing.__name__ == "<lambda>":  # of which there may be several on a line
            yield from _all(seen, [columns for _, _, *columns in thing.__code__.co_positions()])
        yield from _all(seen, text, thing.__defaults__, thing.__kwdefaults__, _around(thing))
    package = getattr(sys.modules.get(thing.__module__), "__package__", None) or ""
    yield from _imports(imported(text, package), seen)


def _text(thing: Any) -> str:
    with suppress(OSError, TypeError):
        return inspect.getsource(thing)
    return ""


def _imports(digests: dict[str, str], seen: Seen) -> Iterator[bytes]:
    if digests:
        yield from _all(seen, digests)


def _own(thing: Any) -> bool:
    """Return whether the user defined a class or function, not a package."""
    if isinstance(thing, FunctionType) and is_own(thing.__code__.co_filename):
        return True
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    if thing.__module__ == "__main__" or (file is not None and is_own(file)):
        return True
    if not isinstance(thing, type):
        return False
    # One that type() made says that it is of the module abc, say.
    return any(map(_own, (*thing.__bases__, *chain.from_iterable(map(_functions, vars(thing).values())))))


def _functions(member: object) -> Iterator[FunctionType]:
    """Yield the functions in a method, property or other descriptor of a class."""
    if isinstance(member, FunctionType):
        yield member
    elif hasattr(type(member), "__get__"):
        for name in ("__wrapped__", "func", "fget", "fset", "fdel"):
            yield from _functions(getattr(member, name, None))


def _around(function: FunctionType) -> dict[str, Any]:
    """Return what a function, and functions inside it, use from around it, by name."""
    names, codes = set[str](), [function.__code__]
    for code in codes:
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    packages = [it for it in used.values() if isinstance(it, ModuleType)]
    for package in packages:  # and the user's own modules in it, which are used by way of it
        inner = {name: sys.modules.get(name) for name in (f"{package.__name__}.{each}" for each in sorted(names))}
        users = {name: it for name, it in inner.items() if it is not None and is_own(it.__file__ or "<string>")}
        used |= users
        packages += users.values()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        used[name] = cell.cell_contents
    return dict(sorted(used.items()))


RECORDED = frozenset({"numpy", "simpy", "torch", "scikit-learn"})
"""Packages whose versions every run records."""


def imported(source: str, package: str = "") -> dict[str, str]:
    """Return what a text imports; see ``modules``. ``package`` is that of its relative imports."""
    return modules(_names(source, package))


def modules(names: Iterable[str]) -> dict[str, str]:
    """Return the digests of modules, and of what they import in turn, by name: those that are the user's own code.

    Of an installed package, the digest is that of its version and files. Python's own modules, flmarket and what every
    run records the version of are left out. Nothing is imported.
    """
    digests: dict[str, str] = {}
    todo = list(dict.fromkeys(names))
    for name in todo:
        top = name.partition(".")[0]
        if name in digests or top in PACKAGES or top in sys.stdlib_module_names or (spec := _spec(name)) is None:
            continue
        if spec.origin is None:  # a folder without __init__.py
            continue
        if not is_own(spec.origin):
            digests |= {f"package {it}": package_digest(it) for it in _providers(top) if it not in RECORDED}
            continue
        content = Path(spec.origin).read_bytes()
        digests[name] = hashlib.sha256(content).hexdigest()
        if spec.origin.endswith(".py"):
            todo += _names(content.decode(errors="replace"), spec.parent or "")
    return dict(sorted(digests.items()))


@cache  # as it was when it was first looked at, which is when it was loaded
def package_digest(name: str) -> str:
    """Return the SHA-256 of an installed package's version and its files' digests, wherever it is."""
    package = distribution(name)
    files = (package.read_text("RECORD") or "").splitlines()
    hashes = [line for line in files if "sha256=" in line and ".dist-info/" not in line and not line.startswith("..")]
    return hashlib.sha256("\n".join([package.version, *sorted(hashes)]).encode()).hexdigest()


@cache
def _providers(top: str) -> list[str]:
    return packages_distributions().get(top, [])


def _spec(name: str) -> ModuleSpec | None:
    top, *rest = name.split(".")
    with suppress(ImportError, ValueError, AttributeError):
        spec = find_spec(top)
        for part in rest:
            if spec is None or spec.submodule_search_locations is None:
                return None
            spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
        return spec
    return None


def _names(source: str, package: str) -> Iterator[str]:
    """Yield the names of what may be modules that a text imports, each after the packages that it is in."""
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:  # the line of a lambda
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                candidates = [it.name for it in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                base = module or ""
                with suppress(ImportError):  # a relative import outside of a package, which fails
                    base = resolve_name("." * level + base, package)
                candidates = [f"{base}.{it.name}" for it in names]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name))]):
                candidates = [name] if called in ("import_module", "__import__") else []
            case _:
                continue
        for name in candidates:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
