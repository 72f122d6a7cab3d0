"""The provenance of runs and trained agents, as meta.json and agents' records hold it: versions, and the revision."""

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache  # of the code that this process has loaded, whatever is installed meanwhile
def versions() -> dict[str, str]:
    """Return the versions of what results depend on."""
    found = {"python": platform.python_version()}
    for package in ("flmarket", "numpy", "simpy", "torch", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown" if package == "flmarket" else "not installed"  # a bare checkout; no torch
    return found


@cache  # the revision of the code that this process has loaded, whatever is checked out meanwhile
def git_revision() -> str | None:
    """Return the revision of the checkout that flmarket runs from, or None if it was installed from a wheel."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
