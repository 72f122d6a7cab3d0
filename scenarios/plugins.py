"""Plug-in files: custom policies, models, mechanisms and the like from a file of the user's own, without packaging.

A scenario names plug-ins; it never loads code. Plug-in files are loaded because the user asks for it, and only here.
Processes and machines that play runs for this one are sent the files as text.
"""

import base64
import hashlib
import inspect
import os
import pickle
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from des.behaviour import BEHAVIOURS
from des.mechanism import MECHANISMS
from fl.blame import Foreign, describe
from fl.datasets import DATASETS
from fl.errors import InputError
from fl.installation import PACKAGES, ROOT
from fl.model_names import MODELS
from fl.plugins import PluginError, Registration, Registry
from learning.policy import POLICIES
from scenarios.file.schema import Scenario
from scenarios.file.switches import mechanisms_over_time, services_over_time

REGISTRIES: tuple[Registry[Any], ...] = (POLICIES, MODELS, DATASETS, MECHANISMS, BEHAVIOURS)
"""All kinds of plug-ins."""

Records = Mapping[str, Mapping[str, str]]
"""The plug-ins that a run uses, as meta.json records them: ``{"policy big-spender": {"file": ..., "sha256": ...}}``."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A plug-in file, read once: what is loaded here, sent to others and recorded is the same text.

    Attributes:
        path: as the user named it.
        text: what is in it.
    """

    path: str
    text: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "PluginFile":
        """Read a plug-in file.

        Raises:
            PluginError: the file does not exist, cannot be read, or it is not UTF-8 text.
        """
        try:
            return cls(str(path), Path(path).read_bytes().decode())
        except FileNotFoundError:
            raise PluginError(f"{path}: no such file; a plug-in is a Python file") from None
        except OSError as error:
            raise PluginError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise PluginError(f"{path}: is not UTF-8 text: {error}") from error

    @property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def record(self) -> dict[str, str]:
        """What meta.json records of it."""
        return {"file": Path(self.path).name, "sha256": self.sha256}

    def load(self) -> None:
        """Run the file, which registers its plug-ins in this process; one that is loaded already is left alone.

        Another text of a file that is loaded takes its place: what the old one registered is dropped.

        Raises:
            PluginError: it has a syntax error, raises an exception, or registers nothing, a name twice, or a thing of
                the wrong type. Says where, and leaves everything as it was.
        """
        if self in loaded():
            return
        module = ModuleType(f"flmarket_plugin_{self.sha256[:16]}")
        module.__file__ = self.path
        with ExitStack() as stack:
            for registry in REGISTRIES:
                stack.enter_context(registry.registering(self.path, self))
            try:
                sys.modules[module.__name__] = module  # dataclasses look their module up
                self._run(module)
            except BaseException as error:  # the user's code may raise anything, SystemExit too
                del sys.modules[module.__name__]
                if isinstance(error, KeyboardInterrupt):
                    raise
                raise PluginError(f"{self._place(error)}: {_reason(error)}") from error

    def _run(self, module: ModuleType) -> None:
        exec(compile(self.text.encode(), self.path, "exec"), module.__dict__)  # noqa: S102 - the user asks for it
        if self not in loaded():
            raise PluginError("registers nothing; put @policy(NAME) or another decorator on what it defines")

    def _place(self, error: BaseException) -> str:
        """Return the file, and the line at which it failed where that is known."""
        if isinstance(error, SyntaxError) and error.filename == self.path:
            line = error.lineno
        else:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((frame.lineno for frame in reversed(frames) if frame.filename == self.path), None)
        return self.path if line is None else f"{self.path}:{line}"


def _reason(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)
    return str(error) if isinstance(error, InputError) else describe(error)


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Load a plug-in file: what it registers then works by its name.

    Args:
        path: a Python file that registers what it defines by decorators: ``@flmarket.policy("big-spender")``.

    Raises:
        PluginError: it cannot be read, or something in it is wrong; says in which line.
    """
    PluginFile.read(path).load()


def loaded() -> list[PluginFile]:
    """Return the plug-in files that are loaded in this process, in the order of their first name in the registries."""
    origins = (found.origin for registry in REGISTRIES for found in registry.registered.values())
    return list(dict.fromkeys(origin for origin in origins if isinstance(origin, PluginFile)))


def any_foreign() -> bool:
    """Return whether there is any plug-in that did not come with flmarket: of a file, this process or a package."""
    return any(not registry.is_builtin(name) for registry in REGISTRIES for name in registry.names())


def is_loading() -> bool:
    """Return whether a plug-in file is being loaded."""
    return any(registry.loading for registry in REGISTRIES)


def packed(scenario: Scenario | None = None) -> list[dict[str, str]]:
    """Return what another process must load before it plays, as JSON can hold it, for ``unpack`` there.

    That is every plug-in file that is loaded here, and whatever else the scenario uses that was registered in this
    process: a notebook's or a script's own classes, pickled by cloudpickle. A pickle goes through a pipe (or Ray) to a
    process that this one has started; none is ever written to a file, or read from one.

    Raises:
        PluginError: something cannot be pickled.
    """
    files = [asdict(file) for file in loaded()]
    own = [] if scenario is None else [it for it in _registrations(scenario) if it[1].origin is None]
    return files + [_pickled(thing, found) for thing, found in own]


def unpack(packages: Iterable[Mapping[str, str]]) -> None:
    """Load what another process has packed. Errors as in ``PluginFile.load``."""
    for package in packages:
        if "pickle" not in package:
            PluginFile(**package).load()
            continue
        kind, _, name = package["thing"].rpartition(" ")
        registry = next(registry for registry in REGISTRIES if registry.kind == kind)
        with Foreign(partial(_not_sent, package["thing"])):
            thing = pickle.loads(base64.b64decode(package["pickle"]))  # noqa: S301 - from whoever started this process
        registry.register(name, thing, {"file": package["file"], "sha256": package["sha256"]})


def _not_sent(thing: str, error: BaseException, advice: str = "") -> PluginError:
    return PluginError(f"{thing!r} cannot be sent to another process: {describe(error)}{advice}")


def _pickled(thing: str, found: Registration) -> dict[str, str]:
    import cloudpickle

    # A module beside the user's script cannot be imported by the other process, which has no such folder on its path.
    modules = [it for it in _own_modules() if it.__name__ not in cloudpickle.list_registry_pickle_by_value()]
    advice = "; put it into a file and load that as a plug-in, or play one run at a time"
    try:
        with Foreign(partial(_not_sent, thing, advice=advice)):
            for module in modules:
                cloudpickle.register_pickle_by_value(module)
            content = base64.b64encode(cloudpickle.dumps(found.thing)).decode()
    finally:
        for module in modules:
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.unregister_pickle_by_value(module)
    return {"thing": thing, "pickle": content, **_record(found)}


def _is_plain(name: str, value: object) -> bool:
    return isinstance(value, int | float | str) and not name.startswith("__")


def _own_modules() -> list[ModuleType]:
    """Return the imported modules whose files are neither installed nor Python's nor flmarket's."""
    places = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    installed = [Path(place).resolve() for place in places] + [ROOT / name for name in PACKAGES]
    return [
        module
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and (file := getattr(module, "__file__", None) or "").endswith(".py")
        and not any(Path(file).resolve().is_relative_to(place) for place in installed)
    ]


def plugins_of(scenario: Scenario, policies: Collection[str] = ()) -> dict[str, dict[str, str]]:
    """Return the plug-ins that a scenario's run depends on, by what it takes from them; see ``Records``.

    Args:
        scenario: what runs.
        policies: that play in it besides those that it names.
    """
    return {thing: _record(found) for thing, found in _registrations(scenario, policies)}


def require_loaded(records: Records, where: str) -> None:
    """Check that the plug-ins of a run that was played before are known here.

    Args:
        records: what the run's meta.json records.
        where: the run, for messages.

    Raises:
        PluginError: one is missing, or these are not records.
    """
    if not isinstance(records, Mapping) or not all(_is_record(record) for record in records.values()):
        raise PluginError(f"{where}: meta.json does not record file and SHA-256 of each plug-in that the run uses")
    for thing, record in records.items():
        if _registered(thing) is None:
            kind, _, name = thing.rpartition(" ")
            if _is_file(record):
                problem = f"uses {kind} {name!r} of the plug-in file {record['file']}; load it with --plugin FILE"
            else:
                problem = (
                    f"{kind} {name!r} was defined in a notebook or script ({record['file']}), so this run can be "
                    "played again only there; to repeat runs from the command line, put the definition into a file, "
                    "load it with --plugin FILE, and play a new run"
                )
            raise PluginError(f"{where}: {problem}")


def require_same_plugins(records: Records, where: str) -> None:
    """Check that the plug-ins of a run that was played before are loaded with the same text. As ``require_loaded``."""
    require_loaded(records, where)
    for thing, record in records.items():
        found = _registered(thing)
        if found is None or _record(found)["sha256"] != record["sha256"]:
            kind, _, name = thing.rpartition(" ")
            if not _is_file(record):
                raise PluginError(
                    f"{where}: was played with another definition of {kind} {name!r}, from a notebook or script "
                    f"({record['file']}); restore that definition, or run again with --fresh"
                )
            raise PluginError(
                f"{where}: was played with a different version of {record['file']}, which defines {kind} {name!r}; "
                f"load the file whose SHA-256 is {record['sha256'][:16]}... with --plugin FILE"
            )


def _is_record(record: object) -> bool:
    return isinstance(record, Mapping) and all(isinstance(record.get(key), str) for key in ("file", "sha256"))


def _is_file(record: Mapping[str, str]) -> bool:
    """Return whether this records a plug-in file, not the module of a notebook's or a script's definition."""
    return record["file"].endswith(".py")


def _record(found: Registration) -> dict[str, str]:
    """Return what meta.json records of a registration: of one without a file, the digest of its own definition."""
    if found.origin is not None:
        return dict(found.origin.record)
    if found.record is not None:
        return dict(found.record)
    try:
        text = _definition(found.thing)
    except (OSError, TypeError):  # typed at a prompt: never taken as the same as another one
        text = uuid4().hex
    return {"file": found.source, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _definition(thing: Any) -> str:
    """Return the source text of a class or function, and the numbers and words that its functions use from around it.

    Raises:
        OSError, TypeError: the text is not known.
    """
    values = dict(vars(thing)) if isinstance(thing, type) else {"": thing}
    for function in filter(inspect.isfunction, list(values.values())):
        around = inspect.getclosurevars(function)
        values |= {**around.globals, **around.nonlocals}
    plain = [f"{name} = {value!r}" for name, value in sorted(values.items()) if _is_plain(name, value)]
    return "\n".join([inspect.getsource(thing), *plain])


def _registered(thing: str) -> Registration | None:
    """Return what this process has registered as ``kind name``."""
    kind, _, name = thing.rpartition(" ")
    return next((registry.registered.get(name) for registry in REGISTRIES if registry.kind == kind), None)


def _registrations(scenario: Scenario, policies: Collection[str] = ()) -> Iterator[tuple[str, Registration]]:
    """Yield what a scenario uses of what this process has registered, as ``kind name`` and its registration."""
    used: dict[str, set[str]] = {
        "policy": {*policies, *(service.policy for _, service in services_over_time(scenario))},
        "model": {scenario.training_for(service.dataset).model for service in scenario.services},
        "data set": {service.dataset for service in scenario.services},
        "mechanism": {market.mechanism for market in mechanisms_over_time(scenario)},
        "behaviour": {scenario.clients.behaviour.kind},
    }
    for registry in REGISTRIES:
        for name in sorted(used[registry.kind]):
            if (found := registry.registered.get(name)) is not None:
                yield f"{registry.kind} {name}", found
