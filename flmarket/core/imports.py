"""The code that other code imports, as digests of definitions count it: with another one, results can be others."""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec, resolve_name
from pathlib import Path
from textwrap import dedent

from flmarket.core.installation import PACKAGES
from flmarket.core.plugin_errors import is_own

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
    found: dict[str, str] = {}
    todo = list(dict.fromkeys(names))
    for name in todo:
        top = name.partition(".")[0]
        if name in found or top in PACKAGES or top in sys.stdlib_module_names or (spec := _spec(name)) is None:
            continue
        if spec.origin is None:  # a folder without __init__.py
            continue
        if not is_own(spec.origin):
            found |= {f"package {it}": package_digest(it) for it in _providers(top) if it not in RECORDED}
            continue
        content = Path(spec.origin).read_bytes()
        found[name] = hashlib.sha256(content).hexdigest()
        if spec.origin.endswith(".py"):
            todo += _names(content.decode(errors="replace"), spec.parent or "")
    return dict(sorted(found.items()))


@cache  # as it was when it was first looked at, which is when it was loaded
def package_digest(name: str) -> str:
    """Return the SHA-256 of an installed package's version and its files' digests, wherever it is."""
    package = distribution(name)
    files = (package.read_text("RECORD") or "").splitlines()
    own = [line for line in files if "sha256=" in line and ".dist-info/" not in line and not line.startswith("..")]
    return hashlib.sha256("\n".join([package.version, *sorted(own)]).encode()).hexdigest()


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
                found = [it.name for it in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                base = module or ""
                with suppress(ImportError):  # a relative import outside of a package, which fails
                    base = resolve_name("." * level + base, package)
                found = [f"{base}.{it.name}" for it in names]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name))]):
                found = [name] if called in ("import_module", "__import__") else []
            case _:
                continue
        for name in found:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
