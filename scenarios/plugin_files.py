"""Plug-in files: custom policies, models, mechanisms and the like from a file of the user's own, without packaging.

A scenario names plug-ins; it never loads code. Plug-in files are loaded because the user asks for it, and only here.
Processes and machines that play runs for this one are sent the files as text.
"""

import base64
import hashlib
import os
import pickle
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from flmarket.core.code_digests import imported, modules, package_digest, recorded
from flmarket.core.errors import InputError
from flmarket.core.names import suggest
from flmarket.core.plugin_errors import describe, is_own
from flmarket.core.plugins import PluginError, Registration
from scenarios.file.interventions import new_players, services_over_time
from scenarios.file.schema import DATASET, REGISTRIES, Scenario

_ELSEWHERE = "differs from what the batch was planned with; install the same there, and leave it while a batch plays"

Records = Mapping[str, Mapping[str, str]]
"""The plug-ins that a run uses, as meta.json records them: ``{"policy big-spender": {"file": ..., "sha256": ...}}``."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A plug-in file, read once: what is loaded here, sent to others and recorded is the same text."""

    path: str  # as the user named it
    text: str
    # The digests of what it imports. None before it is loaded: it may add the folder of that to ``sys.path`` first.
    imports: Mapping[str, str] | None = field(default=None, compare=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "PluginFile":
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
        """Of the file's bytes; if it imports what may change, of these and the digests of that."""
        content = self.text.encode()
        return hashlib.sha256(content + (repr(self.imports).encode() if self.imports else b"")).hexdigest()

    @property
    def record(self) -> dict[str, str]:
        """Its record in meta.json."""
        return {"file": Path(self.path).name, "sha256": self.sha256}

    def load(self) -> ModuleType:
        """Run the file, which registers its plug-ins in this process; one that is loaded already is left alone.

        Another text of a file that is loaded takes its place: what the old one registered is dropped. A file that
        cannot be used leaves everything as it was.
        """
        name = f"flmarket_plugin_{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"
        if self in loaded():
            return sys.modules[name]
        module = ModuleType(name)
        module.__file__ = self.path
        with ExitStack() as stack:
            for registry in REGISTRIES:
                stack.enter_context(registry.registering(self.path, self))
            sys.modules[module.__name__] = module  # dataclasses look their module up
            try:
                exec(compile(self.text.encode(), self.path, "exec"), module.__dict__)  # noqa: S102 - the user asks for it
            except SyntaxError as error:
                line = f"{error.filename}:{error.lineno}" if error.filename else self.path
                raise PluginError(f"{line}: {error.msg}") from error
            except (Exception, SystemExit) as error:
                reason = str(error) if isinstance(error, InputError) else describe(error)
                raise PluginError(f"{self._place(error)}: {reason}") from error
            here = imported(self.text)
            planned = here if self.imports is None else self.imports
            if changed := sorted(name for name in {*here, *planned} if here.get(name) != planned.get(name)):
                raise PluginError(f"{self.path}: {changed[0]}, which it imports, {_ELSEWHERE}")
            object.__setattr__(self, "imports", here)
            if self not in loaded():
                raise PluginError(
                    f"{self.path}: registers nothing; put @policy(NAME) or another decorator on what it defines"
                )
        return module

    def _place(self, error: BaseException) -> str:
        """Return the file, with the line of it that failed."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.path]
        return f"{self.path}:{lines[-1]}" if lines else self.path


def load_plugin(path: str | os.PathLike[str]) -> ModuleType:
    """Load a plug-in file: what it registers then works by its name.

    Args:
        path: a Python file that registers what it defines by decorators: ``@flmarket.policy("big-spender")``.

    Returns:
        The module that the file makes, with all that it defines.

    Raises:
        PluginError: it cannot be read, or something in it is wrong; says in which line.
    """
    return PluginFile.read(path).load()


def registered(kind: str, name: str) -> Any:
    """Return what a name stands for, built in or of a plug-in: a class to make objects of, or to base yours on.

    Args:
        kind: as in messages, such as ``policy``, ``mechanism`` or ``response``.
        name: as scenarios have it: ``registered("mechanism", "proportional-share")``.

    Raises:
        InputError: there is no such kind, or nothing of that name; names the nearest.
    """
    kinds = {registry.kind: registry for registry in REGISTRIES}
    if kind not in kinds:
        raise InputError(f"{kind!r} is no kind of plug-ins{suggest(kind, kinds)}")
    return kinds[kind].load(name)


def loaded() -> list[PluginFile]:
    """Return the plug-in files that are loaded in this process, in the order of their first name in the registries."""
    origins = (found.origin for registry in REGISTRIES for found in registry.registered.values())
    return list(dict.fromkeys(origin for origin in origins if isinstance(origin, PluginFile)))


def require_no_plugin_file(what: str) -> None:
    """Refuse to play while a plug-in file is loaded: every process that plays its runs would play them again."""
    if any(registry.loading for registry in REGISTRIES):
        raise InputError(
            f"a plug-in file must not call flmarket.{what} when it is loaded; put the call below "
            '`if __name__ == "__main__":`'
        )


def packed(scenario: Scenario | None = None) -> list[dict[str, Any]]:
    """Return what another process must load before it plays, as JSON can hold it, for ``unpack`` there.

    That is every plug-in file that is loaded here, the digests of packages, and whatever else the scenario uses that
    was registered in this process: a notebook's or a script's own classes, pickled by cloudpickle. A pickle goes
    through a pipe (or Ray) to a process that this one has started; none is ever written to a file, or read from one.

    Raises:
        PluginError: something cannot be pickled.
    """
    files = [asdict(file) for file in loaded()]
    others = [] if scenario is None else [it for it in _registrations(scenario) if it[1].origin not in loaded()]
    return files + [_pickled(*it) if it[1].origin is None else {"thing": it[0], **_record(it[1])} for it in others]


def unpack(packages: Iterable[Mapping[str, Any]]) -> None:
    """Load what another process has packed. Errors as in ``PluginFile.load``."""
    for package in packages:
        if "text" in package:
            PluginFile(**package).load()
            continue
        kind, _, name = package["thing"].rpartition(" ")
        registry = next(registry for registry in REGISTRIES if registry.kind == kind)
        if "pickle" not in package:
            if (found := registry.find(name)) is None or _record(found)["sha256"] != package["sha256"]:
                raise PluginError(f"{package['file']}, which defines {kind} {name!r}, {_ELSEWHERE}")
            continue
        try:
            thing = pickle.loads(base64.b64decode(package["pickle"]))  # noqa: S301 - of the process that started this one
        except Exception as error:
            raise PluginError(f"{package['thing']!r} cannot be sent to another process: {describe(error)}") from error
        registry.register(name, thing, {"file": package["file"], "sha256": package["sha256"]})


def _pickled(thing: str, found: Registration) -> dict[str, str]:
    import cloudpickle

    # A module next to the user's script cannot be imported by the other process, which lacks its folder on the path.
    modules = [it for it in _own_modules() if it.__name__ not in cloudpickle.list_registry_pickle_by_value()]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        content = base64.b64encode(cloudpickle.dumps(found.thing)).decode()
    except Exception as error:
        raise PluginError(
            f"{thing!r} cannot be sent to another process: {describe(error)}; put it into a file and load that as a "
            "plug-in, or play one run at a time"
        ) from error
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    return {"thing": thing, "pickle": content, **_record(found)}


def _own_modules() -> list[ModuleType]:
    named = [(module, getattr(module, "__file__", None)) for module in list(sys.modules.values())]
    return [it for it, file in named if file and file.endswith(".py") and it.__name__ != "__main__" and is_own(file)]


def plugins_of(scenario: Scenario, policies: Collection[str] = ()) -> dict[str, dict[str, str]]:
    """Return the plug-ins that a scenario's run depends on, by what it takes from them; see ``Records``.

    Args:
        scenario: what runs.
        policies: that play in it besides those that it names.
    """
    return {thing: _record(found) for thing, found in _registrations(scenario, policies)}


def require_loaded(records: Records, where: str) -> None:
    """Check that the plug-ins that a run's meta.json records are known here; ``where`` names the run in messages."""
    for thing, record in records.items():
        if _registered(thing) is not None:
            continue
        kind, _, name = thing.rpartition(" ")
        if record["file"].endswith(".py"):
            source = f"the plug-in file {record['file']}; load that file"
        elif "package" in record:
            source = f"the package {record['file']}; install it"
        else:
            source = (
                f"a notebook or script ({record['file']}), so this run can be played again only there; put the "
                "definition into a file, load that as a plug-in file, and play a new run"
            )
        raise PluginError(f"{where}: uses {kind} {name!r} of {source}")


def require_same_plugins(records: Records, where: str) -> None:
    """Check that the plug-ins of a run that was played before are loaded with the same text. As ``require_loaded``."""
    require_loaded(records, where)
    for thing, record in records.items():
        found = _registered(thing)
        if found is None or _record(found)["sha256"] != record["sha256"]:
            raise PluginError(
                f"{where}: was played with {_version(thing, record)}; what was played has the SHA-256 "
                f"{record['sha256'][:16]}..."
            )


def other_version(thing: str) -> str:
    """Return what a run was played with that is another one now: ``a different version of mine.py, which defines ...``.

    Of what cannot be read, nobody can tell, and the words say why.
    """
    kind, _, name = thing.rpartition(" ")
    record = _record(found) if (found := _registered(thing)) else {}
    if why := record.get("unreadable"):
        return (
            f"{kind} {name!r}, which may be another one now (what defines it cannot be read: {why}; put it into a file)"
        )
    return _version(thing, record)


def _version(thing: str, record: Mapping[str, str]) -> str:
    kind, _, name = thing.rpartition(" ")
    file = f"{record['file']}, which defines " if record else ""
    return f"a different version of {file}{kind} {name!r}"


def _record(found: Registration) -> dict[str, str]:
    """Return what meta.json records of a registration: of one without a file, the digest of its own definition."""
    if isinstance(found.origin, EntryPoint):
        return dict(_package_record(found.origin, found.source))
    if found.origin is not None:
        return dict(found.origin.record)
    if found.record is not None:
        return dict(found.record)
    return {"file": found.source, **recorded(found.thing, otherwise=found.token)}


@cache  # as it was when it was first looked at, which is when it was loaded
def _package_record(entry: EntryPoint, source: str) -> Mapping[str, str]:
    """Return what meta.json records of a package: its name and version, and the digest of its files and modules."""
    parts = modules([entry.module]), package_digest(entry.dist.name) if entry.dist else ""
    found = hashlib.sha256(repr(parts).encode()).hexdigest()
    return {"file": source, "package": entry.value, "sha256": found}


def _registered(thing: str) -> Registration | None:
    """Return what this process has registered as ``kind name``."""
    kind, _, name = thing.rpartition(" ")
    return next((registry.find(name) for registry in REGISTRIES if registry.kind == kind), None)


def _registrations(scenario: Scenario, policies: Collection[str] = ()) -> Iterator[tuple[str, Registration]]:
    """Yield the plug-ins that a scenario uses, as ``kind name`` and their registrations."""
    over_time = [scenario, *(later for _, _, later in new_players(scenario))]
    used = {(plugin.registry.kind, plugin.name) for then in over_time for plugin in then.plugins()}
    used |= {("policy", name) for name in (*policies, *(it.policy for _, it in services_over_time(scenario)))}
    for service in scenario.services:
        used |= {(DATASET, service.dataset), ("model", scenario.training_for(service.dataset).model)}
    for registry in REGISTRIES:
        for name in sorted(name for kind, name in used if kind == registry.kind):
            if (found := registry.find(name)) is not None:
                yield f"{registry.kind} {name}", found
