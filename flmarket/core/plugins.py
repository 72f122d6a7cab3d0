"""Plug-ins: what users extend flmarket with, by name. One class serves every kind of them.

A name is flmarket's own, or was registered in this process by a decorator (in a plug-in file, a script, a notebook), or
is an entry point of an installed package. They are searched in this order.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pkgutil import iter_modules
from types import FunctionType
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

from flmarket.core.errors import InputError
from flmarket.core.names import name_problem, unknown_plugin
from flmarket.core.plugin_errors import definition, describe, method, place, plugin_code
from flmarket.core.plugin_options import OptionsError, defaults, option_problems

T = TypeVar("T")
D = TypeVar("D")
Made = TypeVar("Made")


class UnknownPluginError(InputError):
    """Nothing of that name is built in or registered."""


class PluginError(InputError):
    """A plug-in cannot be used: its name is taken or invalid, it cannot be imported, or it is not of its kind."""


@dataclass(frozen=True, slots=True)
class ListedPlugin(Generic[T]):
    """One line of a registry's listing."""

    name: str
    thing: T | None  # None if it cannot be used
    source: str  # ``flmarket``, a file, or a package and its version
    problem: str | None = None  # why it cannot be used


@dataclass(frozen=True, slots=True)
class Registration:
    """A name registered in this process, or that of an installed package's entry point."""

    thing: Any
    source: str  # where: a plug-in file's path, a module's name, or a package and its version
    origin: Any = None  # the plug-in file, if it was one (see ``Registry.registering``), or the entry point
    record: Mapping[str, str] | None = None  # what runs record of it, where its digest is known already
    token: str = field(default_factory=lambda: uuid4().hex, compare=False)  # its digest, if what defines it is unknown


@cache
def _declared() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return what installed packages declare, by group. Looking takes 3 ms, and the TUI asks often."""
    points = entry_points()
    return {group: tuple(sorted(points.select(group=group), key=lambda entry: entry.name)) for group in points.groups}


def entries(group: str) -> tuple[EntryPoint, ...]:
    """Return what installed packages declare in a group."""
    return _declared().get(group, ())


class Registry(Generic[T]):
    """The plug-ins of one kind.

    There is one registry for each kind (policies, models, data sets, mechanisms, measures), and what a process
    registers lives in it: the only process-wide state that flmarket keeps. It changes when plug-ins are loaded, before
    anything runs. A process that plays runs for another one is sent the plug-in files and loads them itself.
    """

    def __init__(
        self,
        kind: str,  # what messages call it: ``policy``, ``data set``
        group: str,  # the entry points of installed packages: ``flmarket.policies``
        # what comes with flmarket: ``module:attribute``, or the thing itself; of all of it in one place, that place
        builtin: Mapping[str, str | T] | str,
        check: Callable[[Any], str | None] = lambda _: None,  # why something is not of this kind; None if it is
        *,
        reserved: Collection[str] = (),  # names that nothing has and no plug-in may take
        whose: Callable[[Any], str] | None = None,  # words the argument that comes before the options, if there is one
    ) -> None:
        self.kind, self.group = kind, group
        self._comes_with, self._check, self._reserved, self._whose = builtin, check, frozenset(reserved), whose
        self._registered: dict[str, Registration] = {}
        self._loading: tuple[str, Any] | None = None

    @cached_property
    def _builtin(self) -> Mapping[str, str | T]:
        if not isinstance(self._comes_with, str):
            return self._comes_with
        module, _, attribute = self._comes_with.partition(":")
        return cast("Mapping[str, str | T]", getattr(import_module(module), attribute))

    def names(self) -> list[str]:
        """Return all names: built in, registered here (in that order), then those of packages. Imports no plug-in."""
        here = [*self._builtin, *self._registered]
        others = dict.fromkeys(entry.name for entry in entries(self.group) if not self._refusal(entry.name))
        return here + [name for name in others if name not in here]

    @property
    def builtin(self) -> tuple[str, ...]:
        """The names of what comes with flmarket."""
        return tuple(self._builtin)

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is that of something that comes with flmarket."""
        return name in self._builtin

    def name_of(self, thing: object) -> str | None:
        """Return the name that something has here, built in or registered; None if it has none."""
        for name, registration in self._registered.items():
            if registration.thing is thing:
                return name
        module = getattr(thing, "__module__", None)  # what is defined elsewhere need not be imported to be compared
        for name, where in self._builtin.items():
            if where is thing or (
                isinstance(where, str) and where.partition(":")[0] == module and self.load(name) is thing
            ):
                return name
        return None

    def names_of(self, things: Iterable[str | T]) -> list[str]:
        """Return the names of plug-ins that are used side by side; names stay as they are.

        One without a name is registered by that of its class: ``BigSpender`` as ``big-spender``. It takes the place of
        an earlier one of the same name and module: notebooks define things again.

        Raises:
            PluginError: something is not of this kind, two different things have one name, or one of them cannot be
                registered; its decorator gives it another name.
        """
        names: list[str] = []
        known: dict[str, T] = {}
        for each in things:
            if isinstance(each, str):
                names.append(each)
                continue
            if problem := self._check(each):
                raise PluginError(problem)
            name = self.name_of(each) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", getattr(each, "__name__", "")).lower()
            if known.setdefault(name, each) is not each:
                raise PluginError(
                    f"two {self.group.rpartition('.')[2]} are called {name!r}; give one of them another name with "
                    f"@flmarket.{self.kind}(NAME)"
                )
            names.append(name)
        for name, thing in known.items():
            if self.name_of(thing) is None:
                self.register(name, thing)
        return names

    def load(self, name: str) -> T:
        """Return what a name stands for."""
        if name in self._builtin:
            builtin = self._builtin[name]
            if not isinstance(builtin, str):
                return builtin
            name_of_module, _, attribute = builtin.partition(":")
            module = import_module(name_of_module)
            return cast(T, getattr(module, attribute or module.__all__[0]))
        if name in self._registered:
            return cast(T, self._registered[name].thing)
        for entry in entries(self.group):
            if entry.name == name and not self._refusal(name):
                return self._load_entry(entry)
        raise UnknownPluginError(unknown_plugin(self.kind, name, self.names()))

    def wrong_options(self, name: str, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each option that a plug-in does not take, or lacks, with what is wrong. Errors as in ``load``."""
        thing: Any = self.load(name)
        return option_problems(thing, options, given=0 if self._whose is None else 1)

    def defaults(self, name: str) -> dict[str, Any]:
        """Return the options of a plug-in that have defaults, but for its checkpoint. Errors as in ``load``."""
        thing: Any = self.load(name)
        return defaults(thing, given=0 if self._whose is None else 1)

    def create(self: "Registry[type[Made]]", name: str, /, *given: object, **options: Any) -> Made:
        """Return a new object of a plug-in's class.

        Args:
            name: what a scenario calls it.
            given: what flmarket itself passes before the options: a policy's context.
            options: the keyword arguments that the scenario gives it.

        Raises:
            UnknownPluginError, PluginError: as in ``load``.
            OptionsError: it does not take these options, or fails with them.
        """
        what = f"{self.kind} {name!r}{self._whose(*given) if self._whose else ''}"
        for _, problem in self.wrong_options(name, options):
            raise OptionsError(f"{what} {problem}")
        thing = self.load(name)
        with plugin_code(what, OptionsError):
            try:
                return thing(*given, **options)
            except (TypeError, ValueError) as refused:
                where = place(refused) or definition(getattr(thing, "__init__", thing))
                raise OptionsError(f"{what}: {refused}" + (f" ({where})" if where else "")) from refused

    def listing(self) -> list[ListedPlugin[T]]:
        """Return everything there is, with the reason for what cannot be used. Imports all of it."""
        listed = [ListedPlugin(name, self.load(name), "flmarket") for name in self._builtin]
        listed += [ListedPlugin(name, plugin.thing, plugin.source) for name, plugin in self._registered.items()]
        taken = {name: plugin.source for name, plugin in self._registered.items()}
        for entry in entries(self.group):
            source, thing = _package(entry), None
            problem = self._refusal(entry.name)
            if problem is None and entry.name in taken:
                problem = f"the name is registered by {taken[entry.name]}"
            if problem is None:
                taken[entry.name] = source
                try:
                    thing = self._load_entry(entry)
                except PluginError as error:
                    problem = str(error)
            listed.append(ListedPlugin(entry.name, thing, source, problem))
        return listed

    def register(self, name: str, thing: T, record: Mapping[str, str] | None = None) -> None:
        """Add a plug-in to this process; for ``record`` see ``Registration``.

        A module may register a name again (a notebook's cell that is run twice); a plug-in file may not, and a name
        that another file or module has registered is taken.
        """
        module = str(getattr(thing, "__module__", None) or "this process")
        provided = name, module, getattr(thing, "__qualname__", None)
        if not self._loading and any((it.name, it.module, it.attr) == provided for it in entries(self.group)):
            return  # an installed package that uses the decorator as well: its entry point provides the name
        source, origin = self._loading or (module, None)
        problem = self._refusal(name) or self._check(thing)
        earlier = self._registered.get(name)
        if problem is None and earlier is not None and (self._loading or earlier.source != source):
            again = earlier.source == source
            problem = "is registered twice" if again else f"is already registered by {earlier.source}"
        if problem:
            raise PluginError(f"{self.kind} {name!r}: {problem}")
        self._registered[name] = Registration(thing, source, origin, record)

    def decorator(self, name: str) -> Callable[[D], D]:
        """Return a decorator that registers a class or function under a name: ``@flmarket.policy("big-spender")``.

        Raises:
            PluginError: the name is taken or invalid, or what is decorated is not of this kind.
        """
        if not isinstance(name, str):  # @policy without a name, which would otherwise do nothing
            raise PluginError(f'the decorator needs the name of the {self.kind}: write ("name") after it')

        def register(thing: D) -> D:
            self.register(name, cast(T, thing))
            return thing

        return register

    @property
    def registered(self) -> Mapping[str, Registration]:
        """The plug-ins that this process has registered, by name."""
        return dict(self._registered)

    def find(self, name: str) -> Registration | None:
        """Return what this process has registered under a name, or else what a package's entry point provides."""
        if name in self._builtin or name in self._registered:
            return self._registered.get(name)
        entry = next((it for it in entries(self.group) if it.name == name), None)
        return None if entry is None else Registration(None, _package(entry), entry)

    @property
    def loading(self) -> bool:
        """Whether a plug-in file is being loaded."""
        return self._loading is not None

    @contextmanager
    def registering(
        self,
        source: str,  # the plug-in file's path, for messages
        origin: object,  # what ``Registration.origin`` will be
    ) -> Iterator[None]:
        """Attribute what is registered meanwhile to a plug-in file; what an earlier text of it registered is dropped.

        If loading the file fails, the registry is left as it was.
        """
        before, outer = dict(self._registered), self._loading
        self._registered = {name: plugin for name, plugin in before.items() if plugin.source != source}
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
        what = f"{self.kind} {entry.name!r} ({entry.value} of {_package(entry)})"
        try:
            thing = entry.load()
        except (Exception, SystemExit) as error:
            raise PluginError(f"{what}: cannot be imported: {describe(error)}") from error
        if problem := self._check(thing):
            raise PluginError(f"{what}: {problem}")
        return cast(T, thing)


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def built_in(package: str, **elsewhere: str) -> dict[str, str]:
    """Return what comes with flmarket, by its name: the modules of a package, and what is ``module:attribute``.

    The module ``d_first`` holds what is called d-first, and so it is with the keywords.
    """
    modules = {module.name: f"{package}.{module.name}" for module in iter_modules(import_module(package).__path__)}
    return {name.replace("_", "-"): where for name, where in sorted({**modules, **elsewhere}.items())}


def summary(thing: Any) -> str:
    """Return a plug-in in one line: its ``summary`` if it has one, else the first line of its own docstring."""
    text = getattr(thing, "summary", "") or (getattr(thing, "__doc__", None) or "").strip()
    return str(text).partition("\n")[0].strip()


def subclass_problem(thing: Any, base: type) -> str | None:
    """Return why something is not a usable subclass of a class that ``flmarket`` exports; None if it is."""
    if isinstance(thing, base):
        return f"got an object of {type(thing).__name__}; give the class {type(thing).__name__} itself"
    if not isinstance(thing, type) or not issubclass(thing, base):
        return f"{thing!r} is not a subclass of flmarket.{base.__name__}"
    missing = sorted(getattr(thing, "__abstractmethods__", ()))
    if missing:
        return f"{thing.__name__} does not define {' and '.join(missing)}"
    for called, member in vars(base).items():
        if isinstance(member, FunctionType) and not called.startswith("_"):
            _, *names = signature(member).parameters
            try:
                signature(getattr(thing, called)).bind(thing, *names)
            except TypeError:
                return f"{method(thing, called)} must take ({', '.join(['self', *names])})"
    return None
