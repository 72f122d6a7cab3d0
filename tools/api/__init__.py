"""The public interface as text: a line for each name that ``flmarket`` exports, and for what can be used of it.

names.txt holds that of the last change. ``make api`` renews it, once CHANGELOG.md says what
has changed.
"""

import inspect
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import flmarket
from flmarket import testing

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).parent / "names.txt"
CHANGELOG = ROOT / "CHANGELOG.md"


def public() -> list[str]:
    """Return the lines of the interface as it is."""
    exported = [(name, getattr(flmarket, name)) for name in flmarket.__all__]
    exported += [(f"testing.{name}", getattr(testing, name)) for name in testing.__all__]
    return [line for name, thing in exported for line in _lines(name, thing)]


def changelog() -> str:
    """Return a line that tells one state of the changelog from another."""
    return f"# CHANGELOG.md {sha256(CHANGELOG.read_bytes()).hexdigest()[:16]}"


def recorded() -> tuple[str, list[str]]:
    """Return the line of the changelog and those of the interface at the last change."""
    first, *lines = FILE.read_text(encoding="utf-8").splitlines()
    return first, lines


def _lines(name: str, found: object) -> Iterator[str]:
    if not inspect.isclass(found):
        yield f"{name}{_signature(found)}" if callable(found) else f"{name} = {found!r}"
        return
    made_here = any("__init__" in vars(kind) for kind in found.__mro__ if _is_ours(kind))
    yield f"{name}{_signature(found) if made_here else ''}"  # scenarios are made from files: docs/scenario.md
    if issubclass(found, Exception):
        return
    own = {attribute for kind in found.__mro__ if _is_ours(kind) for attribute in vars(kind)}
    declared = {it for kind in found.__mro__ if _is_ours(kind) for it in vars(kind).get("__annotations__", {})}
    for attribute in sorted(it for it in own | declared if not it.startswith(("_", "model_"))):
        value = inspect.getattr_static(found, attribute, None)
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        yield f"{name}.{attribute}{_signature(value) if inspect.isfunction(value) else ''}"


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in {"des", "fl", "flmarket", "learning", "scenarios"}


def _signature(found: object) -> str:
    """Return parameters and their defaults, without types: Pythons write those in different ways."""
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    plain = [it.replace(annotation=inspect.Parameter.empty) for it in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
