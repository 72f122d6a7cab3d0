"""The flmarket that runs: its packages, extras and versions, the processes that it starts, and the cores for these.

The packages have generic names (``fl``, ``learning``, ...), so a folder of the user's own can shadow some of them. The
command line imports this module at every start, so what is slow to import is imported where it is used.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from flmarket.core.errors import InputError

PACKAGES = ("fl", "des", "learning", "scenarios", "flmarket", "tui")

ROOT = Path(__file__).resolve().parents[2]
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
    """Parts of flmarket come from different places, or another machine runs another flmarket."""


def require_one_place() -> None:
    """Check that every package of flmarket is this one's."""
    for name in PACKAGES:
        spec = find_spec(name)
        origin = spec.origin if spec and spec.origin else "nothing"
        if Path(origin).resolve().parent != ROOT / name:
            raise WrongCodeError(
                f"flmarket in {ROOT} needs its package {name!r}, but Python finds {origin}; "
                "rename what is in the way, take its folder off PYTHONPATH, or start from another directory"
            )


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of flmarket's modules in a child process, with this process's flmarket.

    The current directory and the user's own folders do not matter (``python -P``).
    """
    return [sys.executable, "-P", "-c", _BOOT, str(ROOT), module, *arguments]


def end_with_parent() -> None:
    """Let this process be killed when the one that started it ends, where the system offers that."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def version(package: str = "flmarket") -> str:
    """Return the version of a package; of flmarket's code that was never installed, ``unknown``."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(package).version
    except PackageNotFoundError:
        return "unknown" if package == "flmarket" else "not installed"


@cache  # of the code that this process has loaded, whatever is installed meanwhile
def versions() -> dict[str, str]:
    """Return the versions of what results depend on."""
    import platform

    packages = ("flmarket", "numpy", "simpy", "torch", "scikit-learn")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}


@cache  # the revision of the code that this process has loaded, whatever is checked out meanwhile
def git_revision() -> str | None:
    """Return the revision of the checkout that flmarket runs from, or None if it was installed from a wheel."""
    import subprocess

    if not (ROOT / ".git").exists():
        return None
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(describe, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "torch": "networks that the compiled kernel does not train; GPUs; `flmarket train`; downloads of data sets",
        "rl": "RL environments: `flmarket.parallel_env`, `service_env`, `vector_env`; `examples/train_sb3.py`",
        "ray": "`flmarket run --engine ray`",
        "parquet": "`flmarket export --parquet`",
        "tensorboard": "`flmarket train --tensorboard`, `flmarket run --track tensorboard`",
        "mlflow": "`flmarket run --track mlflow`",
        "wandb": "`flmarket run --track wandb` (Weights & Biases)",
        "web": "`flmarket tui --web`",
        "png": "pictures of the screen as PNG as well as SVG",
    }
)
"""The extras that ``pip install 'flmarket[NAME]'`` adds, and what each is for."""


def require_extra(
    extra: str,  # the extra's name
    what: str,  # what needs it, as the user called it
    packages: str,  # what it brings, in words
    *modules: str,  # the names that these packages are imported by
) -> None:
    """Say what to install where packages of an extra are missing. Imports nothing."""
    if any(find_spec(module) is None for module in modules):
        raise InputError(f"{what} needs {packages}: {install_command(f'flmarket[{extra}]')}")


def install_command(what: str) -> str:
    """Return the shell command that installs something where this flmarket runs, whatever ``pip`` the shell finds."""
    python, here = Path(sys.executable), Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return shlex.join([str(shown), "-m", "pip", "install", what])


def usable_cores() -> int:
    """Return the number of cores: those that this process is allowed to run on, where the system can tell."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
