"""The flmarket that runs: where its packages lie, and how to start child processes that run the same code.

The packages have generic names (``fl``, ``learning``, ...), so a folder of the user's own can shadow some of them. The
command line imports this module at every start, so what is slow to import is imported where it is used.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fl.errors import InputError

PACKAGES = ("fl", "des", "learning", "scenarios", "flmarket", "tui")

ROOT = Path(__file__).resolve().parents[1]
"""The folder that this flmarket's packages lie in: ``site-packages``, or a source checkout."""

# Puts the caller's flmarket first only where the child would find another one: a folder that stands before the standard
# library in sys.path might shadow parts of that, too.
_BOOT = """\
import importlib.util, os, runpy, sys
root, module = sys.argv.pop(1), sys.argv.pop(1)
found = importlib.util.find_spec("fl")
if found is None or not found.origin or os.path.realpath(os.path.join(os.path.dirname(found.origin), "..")) != root:
    sys.path.insert(0, root)
    importlib.invalidate_caches()
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


class WrongCodeError(InputError):
    """Parts of flmarket come from different places, or another process runs another flmarket."""


def require_one_place() -> None:
    """Check that every package of flmarket is this one's."""
    for name in PACKAGES:
        spec = find_spec(name)
        found = spec.origin if spec and spec.origin else "nothing"
        if Path(found).resolve().parent != ROOT / name:
            raise WrongCodeError(
                f"flmarket in {ROOT} needs its package {name!r}, but Python finds {found}; "
                "rename what is in the way, take its folder off PYTHONPATH, or start from another directory"
            )


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of flmarket's modules in a child process, with this process's flmarket.

    The current directory and the user's own folders do not matter (``python -P``).
    """
    return [sys.executable, "-P", "-c", _BOOT, str(ROOT), module, *arguments]


@cache
def fingerprint() -> dict[str, str]:
    """Return what distinguishes this flmarket from another one: version, SHA-256 of its Python code, kernel in use.

    Two machines with equal fingerprints run the same code, wherever it lies.
    """
    import hashlib

    from fl import fused

    digest = hashlib.sha256()
    for name in PACKAGES:
        for path in sorted((ROOT / name).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return {
        "version": version(),
        "code": digest.hexdigest()[:16],
        "kernel": fused.ARITHMETIC if fused.available() else "reference",
    }


def require_same_installation(
    theirs: Mapping[str, str],  # the other process's ``fingerprint``
    whose: str,  # what the message calls this process: ``worker on node7``
) -> None:
    """Check that this process runs the same flmarket as whoever it works for."""
    own = fingerprint()
    different = [f"{key} {own[key]!r} instead of {theirs.get(key)!r}" for key in own if own[key] != theirs.get(key)]
    if different:
        raise WrongCodeError(
            f"the {whose} runs another flmarket, from {ROOT}: {', '.join(different)}; its results could differ. "
            "Install the same version there, and start outside of source checkouts"
        )


def version() -> str:
    """Return flmarket's version, or ``unknown`` for code that was never installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("flmarket").version
    except PackageNotFoundError:
        return "unknown"


def kernel_problem() -> str:
    """Return why there is no compiled kernel here, for messages that begin with "the fused kernel"."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        files = distribution("flmarket").files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if (
            file.parent.name == "fl"
            and file.name.startswith("_fused.")
            and path.exists()
            and path.parent != ROOT / "fl"
        ):
            return f"is built for the flmarket in {path.parents[1]}, but Python imports the one in {ROOT}"
    return "was not built: it needs a C++ compiler when flmarket is installed, and a CPU it knows"
