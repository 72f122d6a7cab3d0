"""Errors in the code of plug-ins: what was raised, and the file and line of the user's own code that it comes from."""

import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import PACKAGES, ROOT


class PluginFailed(RunError):  # noqa: N818 - names what happened
    """The code of a plug-in raised an exception."""


@contextmanager
def plugin_code(
    doing: str,  # begins the message: ``policy 'mine' of service 'alpha' failed to act in round 3``
    raising: Callable[[str], Exception] = PluginFailed,
) -> Iterator[None]:
    """Let what a plug-in raises become an error that says where. A defect of flmarket's own stays as it is."""
    try:
        yield
    except (InputError, RunError):
        raise
    except (Exception, SystemExit) as error:
        if not (where := place(error)):
            raise
        raise raising(f"{doing}: {describe(error)} ({where})") from error


def describe(error: BaseException) -> str:
    """Return an exception's type and message on one line: ``ModuleNotFoundError: No module named 'x'``."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def blame(error: BaseException) -> str:
    """Return an exception in one line, with its place if that is in a plug-in: ``IndexError: ... (mine.py:12)``."""
    where = place(error)
    return f"{describe(error)} ({where})" if where else describe(error)


def place(error: BaseException) -> str | None:
    """Return the last place in a plug-in on the way to an exception, or to its cause: ``mine.py:12, in Mine.act``."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if is_own(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{line}, in {called(frame)}"
    return place(error.__cause__) if error.__cause__ else None


def called(frame: FrameType) -> str:
    """Return a function's name with that of its class: ``Mine.act``."""
    return frame.f_code.co_qualname.rpartition("<locals>.")[2]


def method(of: object, name: str) -> str:
    """Return what a message calls a method of a plug-in's class or object: ``Free.clear() (mine.py:12)``."""
    kind = of if isinstance(of, type) else type(of)
    shown = f"{kind.__name__}.{name}()"
    return f"{shown} ({where})" if (where := definition(getattr(kind, name))) else shown


def plugin_state(plugin: Any, kind: str, error: type[RunError]) -> dict[str, Any]:
    """Return what a plug-in's mechanism or behaviour has noted (``state()``), as a checkpoint stores it."""
    import json  # which takes its time at every start of the command line

    state = plugin.state()
    try:
        stored: object = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError):
        stored = None
    if not isinstance(state, Mapping) or stored != state:
        where = f"{kind} {method(plugin, 'state')}"
        raise error(f"{where} must return what JSON can store: texts, numbers, lists, and dicts by text")
    return dict(state)


def definition(function: Callable[..., object]) -> str | None:
    """Return the file and line where a plug-in defines a function: ``mine.py:12``; None of all others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None and is_own(code.co_filename) else None


@cache
def is_own(file: str) -> bool:
    """Return whether code is a plug-in's: not flmarket's, Python's, or that of a package without plug-ins."""
    path = Path(file).resolve()
    if file == "<string>" or file.startswith("<frozen") or any(path.is_relative_to(ROOT / name) for name in PACKAGES):
        return False
    for folder in ("site-packages", "dist-packages"):  # of the environment, the user or the system
        if folder in path.parts:
            return path.parts[path.parts.index(folder) + 1].removesuffix(".py") in _modules_with_plugins()
    return not path.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


@cache
def _modules_with_plugins() -> set[str]:
    """Return the modules of installed packages that declare plug-ins."""
    from importlib.metadata import distributions  # not before something failed: 10 ms

    declared = [entry for package in distributions() for entry in package.entry_points]
    return {entry.module.partition(".")[0] for entry in declared if entry.group.startswith("flmarket.")}
