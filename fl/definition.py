"""What a class or function of the user's own is made of, so that two definitions of one name can be told apart.

Compiled code is compared, not source text: it is known for what was typed at a prompt, too, and it is what runs,
whatever has become of the file since.
"""

import dataclasses
import functools
import hashlib
import re
import site
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from fl.blame import Foreign, describe
from fl.installation import PACKAGES, ROOT

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented), re.Pattern)

# Bookkeeping of classes: addresses, line numbers, annotations, and what dataclasses make of the attributes beside it.
_UNTOLD = {
    *("__module__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "_abc_impl"),
    *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__type_params__"),
    *("__dataclass_params__", "__match_args__"),
}


class UnknowableError(Exception):
    """Whether this is the same definition as another one cannot be told."""


def digest(thing: Any) -> str:
    """Return the SHA-256 of a definition, of the same bytes in every process of one version of Python.

    It covers a class's own members and those of the user's base classes, default values, closures, and the globals that
    the code names, at any depth. Of what belongs to flmarket, to installed packages or to Python, it covers the names.

    Raises:
        UnknowableError: it holds something whose value cannot be told, such as an open file or a random generator.
    """
    # A repr or a descriptor of the user's own may raise anything.
    with Foreign(lambda error: UnknowableError(describe(error)), UnknowableError):
        text = "\n".join(_Telling().tell(thing))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def users_modules() -> list[ModuleType]:
    """Return the imported Python modules that lie outside flmarket, installed packages and the standard library."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name != "__main__" and isinstance(module, ModuleType) and _file(module) and is_users(name)
    ]


def is_users(name: str) -> bool:
    """Return whether a module of this name is the user's own: ``__main__``, or a file that is not installed."""
    if name == "__main__":
        return True
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return False
    module = sys.modules.get(name)
    if module is None:
        return True  # made up: exec and the like
    file = _file(module)
    if file is None:  # a compiled module, or a namespace; __file__ may be missing for what was made in this process
        return not getattr(module, "__file__", None) and getattr(module, "__spec__", None) is None
    return not any(file.is_relative_to(place) for place in _installed())


def _file(module: ModuleType) -> Path | None:
    """Return a Python module's file."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None


@cache
def _installed() -> frozenset[Path]:
    known = [path for key, path in sysconfig.get_paths().items() if key.endswith(("lib", "stdlib"))]
    places = [*known, *site.getsitepackages(), site.getusersitepackages(), *(str(ROOT / name) for name in PACKAGES)]
    return frozenset(Path(place).resolve() for place in places)


class _Telling:
    """Writes down what a thing is made of; what was met before is written as its number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no two things have one id

    def tell(self, value: Any) -> Iterator[str]:
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            yield f"{type(value).__name__} {value!r}"
            return
        if id(value) in self._met:
            yield f"met {self._met[id(value)]}"
            return
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        match value:
            case type():
                yield from self._class(value)
            case ModuleType():
                yield from self._module(value)
            case FunctionType():
                yield from self._function(value)
            case MethodType():
                yield "method"
                yield from self._all([value.__self__, value.__func__])
            case BuiltinFunctionType() if value.__self__ is None or isinstance(value.__self__, ModuleType | type):
                yield f"builtin {value.__module__}.{value.__qualname__}"
            case CodeType():
                yield from self._code(value)
            case np.ndarray() | np.generic():
                yield from self._array(np.asarray(value))
            case Enum():
                yield f"member {value.name}"
                yield from self.tell(type(value))
            case _:
                yield from self._object(value)

    def _all(self, values: Iterable[Any]) -> Iterator[str]:
        values = list(values)
        yield f"{len(values)} of"
        for value in values:
            yield from self.tell(value)

    def _class(self, value: type) -> Iterator[str]:
        yield f"class {value.__qualname__}"
        if not is_users(value.__module__):
            yield f"of {value.__module__}"
            return
        yield from self._all([type(value), *value.__mro__[1:]])
        members = dict(vars(value))
        if issubclass(value, Enum):  # besides these, enumerations hold tables of Python's own
            yield from self._named({name: member.value for name, member in value.__members__.items()})
            code = (FunctionType, property, classmethod)
            members = {name: member for name, member in members.items() if isinstance(member, code)}
        for name, member in sorted(members.items()):
            if name not in _UNTOLD and type(member).__name__ not in ("member_descriptor", "getset_descriptor"):
                yield f"attribute {name}"
                yield from self.tell(member)

    def _module(self, value: ModuleType) -> Iterator[str]:
        yield f"module {value.__name__}"
        if is_users(value.__name__):
            yield from self._named({name: it for name, it in vars(value).items() if not name.startswith("__")})

    def _function(self, value: FunctionType) -> Iterator[str]:
        yield f"function {value.__qualname__}"
        if not is_users(value.__module__ or "__main__"):
            yield f"of {value.__module__}"
            return
        yield from self._all([value.__code__, value.__defaults__, value.__kwdefaults__])
        for cell in value.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                yield "an empty cell"
            else:
                yield from self.tell(content)
        used = {name: value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__}
        yield from self._named(used)
        yield from self._named(vars(value))

    def _code(self, value: CodeType) -> Iterator[str]:
        yield f"code {value.co_code.hex()} {value.co_exceptiontable.hex()} {value.co_flags}"
        yield repr((value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount))
        yield repr((value.co_names, value.co_varnames, value.co_cellvars, value.co_freevars))
        yield from self._all(value.co_consts)

    def _array(self, value: np.ndarray[Any, Any]) -> Iterator[str]:
        yield f"array {value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            yield from self._all(value.ravel().tolist())
        else:
            yield hashlib.sha256(value.tobytes()).hexdigest()

    def _named(self, values: Mapping[str, Any]) -> Iterator[str]:
        for name, value in sorted(values.items()):
            yield f"name {name}"
            yield from self.tell(value)

    def _object(self, value: Any) -> Iterator[str]:
        kind = type(value)
        yield f"object of {kind.__module__}.{kind.__qualname__}"
        if parts := _parts(value):
            yield from self._all(parts)
        elif is_users(kind.__module__):
            yield from self.tell(kind)
            if isinstance(value, (list, tuple, set, frozenset, dict, str, bytes, int, float)):
                yield from self.tell(next(base for base in kind.__mro__ if base.__module__ == "builtins")(value))
            slots = [name for base in kind.__mro__ for name in _slots(base)]
            yield from self._named({name: getattr(value, name) for name in slots if hasattr(value, name)})
            yield from self._named(getattr(value, "__dict__", {}))
        elif isinstance(value, (set, frozenset)):
            yield from sorted("\n".join(self.tell(item)) for item in value)
        elif isinstance(value, Mapping):
            yield from self._all(item for pair in value.items() for item in pair)
        elif isinstance(value, (list, tuple, deque)):
            yield from self._all(value)
        elif dataclasses.is_dataclass(value):
            yield from self._named({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        elif kind.__module__.partition(".")[0] in sys.stdlib_module_names and _tells(value):
            yield "MISSING" if value is dataclasses.MISSING else repr(value)
        else:
            raise UnknowableError(f"nobody can tell what is in a {kind.__module__}.{kind.__qualname__}")


def _parts(value: Any) -> list[Any]:
    """Return what the wrappers of functions in the standard library hold."""
    match value:
        case staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [value.fget, value.fset, value.fdel]
        case functools.cached_property():
            return [value.func]
        case functools.partial() | functools.partialmethod():
            return [value.func, value.args, value.keywords]
        case functools._lru_cache_wrapper():
            return [value.__wrapped__, value.cache_parameters()]
        case dataclasses.Field():
            return [value.name, value.init, value.default, value.default_factory]
    return []


def _tells(value: Any) -> bool:
    """Return whether the repr of an object of the standard library tells its value: no address, no part left out."""
    text = repr(value)
    return value is dataclasses.MISSING or not re.search(r" at 0x|\.\.\.", text)


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [name for name in ([slots] if isinstance(slots, str) else slots) if not name.startswith("__")]


def _names(code: CodeType) -> set[str]:
    """Return the names that code may look up among its globals, functions inside it included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for one in inner for name in _names(one))}
