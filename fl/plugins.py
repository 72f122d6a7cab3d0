"""Plug-ins: what users extend flmarket with, by name. One class serves every kind of them.

A name comes from one of three places, which are searched in this order:

1. flmarket itself. These names cannot be taken by anyone else.
2. This process: a file of the user's own that called ``Registry.register``, through a decorator.
3. An installed package that declares an entry point in the registry's group.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, Generic, TypeVar, cast

from fl.blame import Foreign, describe
from fl.errors import InputError
from fl.names import name_problem, unknown_plugin

T = TypeVar("T")
D = TypeVar("D")


class UnknownPluginError(InputError):
    """Nothing of that name is built in or registered."""


class PluginError(InputError):
    """A plug-in cannot be used: its name is taken or invalid, it cannot be imported, or it is not of its kind."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """One line of a registry's listing.

    Attributes:
        name: its name, usable or not.
        thing: what it stands for; None if it cannot be used.
        source: where it comes from: ``flmarket``, a file, or a package and its version.
        problem: why it cannot be used; None if it can.
    """

    name: str
    thing: T | None
    source: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """A name registered in this process.

    Attributes:
        thing: what it stands for.
        source: where it was registered: a plug-in file's path, or a module's name.
        origin: the plug-in file, if it was one; see ``Registry.registering``.
        record: what runs record of it, where another process defined it and knows that better.
    """

    thing: Any
    source: str
    origin: Any = None
    record: Mapping[str, str] | None = None


class Registry(Generic[T]):
    """The plug-ins of one kind.

    There is one registry object for each kind (policies, models, data sets, mechanisms, behaviours), and what a process
    registers lives in it. This is the only process-wide state that flmarket keeps: it changes when plug-ins are loaded,
    before anything runs. A process that plays runs for another one is sent the plug-in files and loads them itself.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, str | T],
        check: Callable[[Any], str | None] = lambda _: None,
        *,
        reserved: Collection[str] = (),
    ) -> None:
        """Create a registry to which nothing has been added.

        Args:
            kind: what messages call a plug-in of this kind: ``policy``, ``data set``.
            group: the entry-point group of installed packages: ``flmarket.policies``.
            builtin: what comes with flmarket, as ``module:attribute`` (imported when used) or as the thing itself.
            check: returns why a plug-in is not of this kind (``is not a subclass of ...``), or None if it is.
            reserved: names that a plug-in must not have although nothing built in has them.
        """
        self.kind, self.group = kind, group
        self._builtin, self._check, self._reserved = builtin, check, frozenset(reserved)
        self._registered: dict[str, Registration] = {}
        self._loading: tuple[str, Any] | None = None

    def names(self) -> list[str]:
        """Return all names: built in, registered here (in that order), then those of packages. Imports nothing."""
        own = [*self._builtin, *self._registered]
        return [*own, *sorted({entry.name for entry in self._entries() if not self._refusal(entry.name)} - set(own))]

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is that of something that comes with flmarket."""
        return name in self._builtin

    def load(self, name: str) -> T:
        """Return what a name stands for.

        Raises:
            UnknownPluginError: there is none of that name; suggests the nearest one.
            PluginError: the package that registers it fails to import, or what it registers is not of this kind.
        """
        if name in self._builtin:
            found = self._builtin[name]
            if not isinstance(found, str):
                return found
            module, _, attribute = found.partition(":")
            return cast(T, getattr(import_module(module), attribute))
        if name in self._registered:
            return cast(T, self._registered[name].thing)
        if not self._refusal(name):
            for entry in self._entries():
                if entry.name == name:
                    return self._load_entry(entry)
        raise UnknownPluginError(unknown_plugin(self.kind, name, self.names()))

    def listing(self, broken: Mapping[str, str] | None = None) -> list[Listed[T]]:
        """Return everything there is, with the reason for what cannot be used. Imports all of it; never fails.

        Args:
            broken: by name, why an entry point must not be imported here: it would end this process.
        """
        listed = [Listed(name, self.load(name), "flmarket") for name in self._builtin]
        listed += [Listed(name, found.thing, found.source) for name, found in self._registered.items()]
        taken = {name: found.source for name, found in self._registered.items()}
        for entry in sorted(self._entries(), key=lambda entry: entry.name):
            source = _package(entry) or "an unknown package"
            try:
                problem = self._refusal(entry.name) or (broken or {}).get(entry.name)
                thing = None if problem else self._load_entry(entry)
            except PluginError as error:
                thing, problem = None, str(error)
            if entry.name in taken:
                thing, problem = None, problem or f"the name is registered by {taken[entry.name]}"
            taken.setdefault(entry.name, source)
            listed.append(Listed(entry.name, thing, source, problem))
        for package, problem in _damaged(self.group):
            listed.append(Listed(package, None, package, problem))
        return listed

    def register(self, name: str, thing: T, record: Mapping[str, str] | None = None) -> None:
        """Add a plug-in to this process.

        A module may register a name again (a notebook's cell that is run twice, a module that is reloaded); a plug-in
        file may not, nor may anybody take a name that another file or module has registered. For ``record`` see
        ``Registration``.

        Raises:
            PluginError: the name is taken or invalid, or the thing is not of this kind.
        """
        module = str(getattr(thing, "__module__", None) or "this process")
        provided = name, module, getattr(thing, "__qualname__", None)
        if not self._loading and any((it.name, it.module, it.attr) == provided for it in self._entries()):
            return  # an installed package that uses the decorator as well: its entry point provides the name
        source, origin = self._loading or (module, None)
        problem = self._refusal(name) or self._check(thing)
        earlier = self._registered.get(name)
        if problem is None and earlier is not None and (self._loading or earlier.source != source):
            problem = (
                "is registered twice" if earlier.source == source else f"is already registered by {earlier.source}"
            )
        if problem:
            raise PluginError(f"{self.kind} {name!r}: {problem}")
        self._registered[name] = Registration(thing, source, origin, record)

    def decorator(self, name: str) -> Callable[[D], D]:
        """Return a decorator that registers a class or function under a name. Errors as in ``register``."""
        if not isinstance(name, str):  # @policy without a name, which would otherwise do nothing
            raise PluginError(f'the decorator needs the name of the {self.kind}: write ("name") after it')

        def register(thing: D) -> D:
            self.register(name, cast(T, thing))
            return thing

        return register

    @property
    def registered(self) -> Mapping[str, Registration]:
        """What this process has registered, by name."""
        return dict(self._registered)

    @property
    def loading(self) -> bool:
        """Whether a plug-in file is being loaded."""
        return self._loading is not None

    @contextmanager
    def registering(self, source: str, origin: object) -> Iterator[None]:
        """Attribute what is registered meanwhile to a plug-in file. What an earlier text of it registered is dropped.

        Args:
            source: the file's path, for messages.
            origin: what ``Registration.origin`` will be.

        If loading the file fails, the registry is left as it was.
        """
        before, outer = dict(self._registered), self._loading
        self._registered = {name: found for name, found in before.items() if found.source != source}
        self._loading = source, origin
        try:
            yield
        except BaseException:
            self._registered = before
            raise
        finally:
            self._loading = outer

    def _refusal(self, name: str) -> str | None:
        """Return why a plug-in must not have this name."""
        if name in self._builtin:
            return f"the name belongs to a built-in {self.kind}; choose another one"
        if name in self._reserved:
            return "flmarket uses this name itself; choose another one"
        return name_problem(name)

    def _entries(self) -> list[EntryPoint]:
        try:
            return list(_installed(_places()).select(group=self.group))
        except Exception:  # a package's damaged metadata: the others must not suffer from it
            return [entry for package in distributions() for entry in _entries_of(package, self.group)]

    def _load_entry(self, entry: EntryPoint) -> T:
        package = _package(entry)
        what = f"{self.kind} {entry.name!r} ({entry.value}{f' of {package}' if package else ''})"
        with Foreign(lambda error: PluginError(f"{what}: cannot be imported: {describe(error)}")):
            thing = entry.load()
            problem = self._check(thing)
        if problem:
            raise PluginError(f"{what}: {problem}")
        return cast(T, thing)


@lru_cache(maxsize=1)
def _installed(places: tuple[tuple[str, int], ...]) -> Any:  # noqa: ARG001 - what is kept is kept for these
    """Return the entry points of all packages and groups, kept until a package comes or goes and changes a place.

    Reading them takes a while, and the form of the TUI checks its scenario, which needs them, at every pause in typing.
    """
    return entry_points()


def _places() -> tuple[tuple[str, int], ...]:
    """Return where packages are looked for, and when something was last added there or removed, in nanoseconds."""
    return tuple((place, _changed(place)) for place in sys.path)


def _changed(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def summary(thing: Any) -> str:
    """Return a plug-in in one line: its ``summary`` if it has one, else the first line of its own docstring."""
    text = getattr(thing, "summary", "") or (getattr(thing, "__doc__", None) or "").strip()
    return str(text).partition("\n")[0].strip()


def subclass_problem(found: Any, base: type, name: str) -> str | None:
    """Return why something is not a usable subclass of ``base``, which users know as ``name``; None if it is."""
    if isinstance(found, base):
        return f"got an object of {type(found).__name__}; give the class {type(found).__name__} itself"
    if not isinstance(found, type) or not issubclass(found, base):
        return f"{found!r} is not a subclass of {name}"
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    return f"{found.__name__} does not define {' and '.join(missing)}" if missing else None


def _package(entry: EntryPoint) -> str | None:
    """Return the name and version of the package that declares an entry point, where they are known."""
    if entry.dist is None:
        return None
    try:
        return f"{entry.dist.name} {entry.dist.version}"
    except Exception:  # damaged metadata
        return None


def _entries_of(package: Any, group: str) -> list[EntryPoint]:
    try:
        return list(package.entry_points.select(group=group))
    except Exception:  # _damaged reports it
        return []


def _damaged(group: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each package that mentions the group but whose entry points cannot be read, and why."""
    try:
        _installed(_places())
    except Exception:
        for package in distributions():
            try:
                package.entry_points.select(group=group)
            except Exception as error:
                if group in (package.read_text("entry_points.txt") or ""):
                    yield str(package.name), f"its entry_points.txt cannot be read: {describe(error)}"
