"""Plug-ins: what users extend flmarket with, by name. One class serves every kind of them.

A name comes from one of three places, which are searched in this order:

1. flmarket itself. These names cannot be taken by anyone else.
2. This process: a file of the user's own that called ``Registry.register``, through a decorator.
3. An installed package that declares an entry point in the registry's group.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar, cast

from fl.blame import Foreign, blame, describe
from fl.errors import InputError
from fl.names import name_problem, unknown_plugin
from fl.packages import damaged, entries, package

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
            builtin: what comes with flmarket, as ``module:attribute`` or as the name of a module whose ``__all__``
                names it (both are imported when used), or as the thing itself.
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
        return [
            *own,
            *sorted({entry.name for entry in entries(self.group) if not self._refusal(entry.name)} - set(own)),
        ]

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is that of something that comes with flmarket."""
        return name in self._builtin

    def is_of_package(self, name: str) -> bool:
        """Return whether a name is that of an installed package's plug-in, which is imported when it is loaded."""
        return name not in self._builtin and name not in self._registered

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
            name_of_module, _, attribute = found.partition(":")
            module = import_module(name_of_module)
            return cast(T, getattr(module, attribute or module.__all__[0]))
        if name in self._registered:
            return cast(T, self._registered[name].thing)
        if not self._refusal(name):
            for entry in entries(self.group):
                if entry.name == name:
                    return self._load_entry(entry)
        raise UnknownPluginError(unknown_plugin(self.kind, name, self.names()))

    def listing(self) -> list[Listed[T]]:
        """Return everything there is, with the reason for what cannot be used. Imports all of it."""
        listed = [Listed(name, self.load(name), "flmarket") for name in self._builtin]
        listed += [Listed(name, found.thing, found.source) for name, found in self._registered.items()]
        taken = {name: found.source for name, found in self._registered.items()}
        for entry in sorted(entries(self.group), key=lambda entry: entry.name):
            source, problem, thing = package(entry) or "an unknown package", self._refusal(entry.name), None
            if problem is None and entry.name in taken:  # nobody can use it, so it is not imported
                problem = f"the name is registered by {taken[entry.name]}"
            try:
                thing = None if problem else self._load_entry(entry)
            except PluginError as error:
                problem = str(error)
            taken.setdefault(entry.name, source)
            listed.append(Listed(entry.name, thing, source, problem))
        for name, problem in damaged(self.group):
            listed.append(Listed(name, None, name, problem))
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
        if not self._loading and any((it.name, it.module, it.attr) == provided for it in entries(self.group)):
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

    def _load_entry(self, entry: EntryPoint) -> T:
        origin = package(entry)
        what = f"{self.kind} {entry.name!r} ({entry.value}{f' of {origin}' if origin else ''})"
        with Foreign(lambda error: PluginError(f"{what}: cannot be imported: {describe(error)}")):
            thing = entry.load()
            problem = self._check(thing)
        if problem:
            raise PluginError(f"{what}: {problem}")
        return cast(T, thing)


def built_in(package: str) -> dict[str, str]:
    """Return the modules of a package, each of which holds something built in, by its name: ``d_first`` is d-first."""
    modules = iter_modules(import_module(package).__path__)
    return {module.name.replace("_", "-"): f"{package}.{module.name}" for module in modules}


def summary(thing: Any) -> str:
    """Return a plug-in in one line: its ``summary`` if it has one, else the first line of its own docstring."""
    text = getattr(thing, "summary", "") or (getattr(thing, "__doc__", None) or "").strip()
    return str(text).partition("\n")[0].strip()


def line_about(listed: Listed[Any], summary: Callable[[Any], str] = summary) -> str:
    """Return what a listing shows of a plug-in: why it cannot be used, else its summary. Never fails.

    Args:
        listed: the plug-in.
        summary: returns a usable plug-in's line; may raise anything, as it reads the plug-in's attributes.
    """
    if listed.problem:
        return listed.problem
    try:
        with Foreign(lambda error: PluginError(f"summary: {describe(error)}{blame(error)}")):
            return summary(listed.thing)
    except PluginError as error:
        return str(error)


def subclass_problem(found: Any, base: type, name: str) -> str | None:
    """Return why something is not a usable subclass of ``base``, which users know as ``name``; None if it is."""
    if isinstance(found, base):
        return f"got an object of {type(found).__name__}; give the class {type(found).__name__} itself"
    if not isinstance(found, type) or not issubclass(found, base):
        return f"{found!r} is not a subclass of {name}"
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    return f"{found.__name__} does not define {' and '.join(missing)}" if missing else None
