"""The fingerprint of a machine's flmarket: where it is equal, results are the same."""

import hashlib
from collections.abc import Mapping
from functools import cache

from fl.training import fused
from flmarket.core.installation import PACKAGES, ROOT, WrongCodeError, version


@cache
def fingerprint() -> dict[str, str]:
    """Return what distinguishes this flmarket from another one: version, SHA-256 of its Python code, kernel in use.

    Two machines with equal fingerprints run the same code, wherever it lies.
    """
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
    """Check that this process runs the same flmarket as the one it works for."""
    own = fingerprint()
    different = [f"{key} {own[key]!r} instead of {theirs.get(key)!r}" for key in own if own[key] != theirs.get(key)]
    if different:
        raise WrongCodeError(
            f"the {whose} runs another flmarket, from {ROOT}: {', '.join(different)}; its results could differ. "
            "Install the same version there, and start outside of source checkouts"
        )
