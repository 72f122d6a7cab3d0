"""The version of flmarket that played a run: another version may play the same scenario and seed otherwise.

A complete run of another version is skipped as complete, so that its results are not lost. A user who skips it,
compares it with runs of a third version or finds problems in it gets a note of the version.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from flmarket.core.installation import version
from scenarios.logs.arithmetic import PAGE, shares


def played_by(meta: Mapping[str, Any]) -> str:
    """Return the version of flmarket that played a run, as meta.json names it; ``unknown`` where it does not."""
    found = meta.get("versions")
    return str(found.get("flmarket", "unknown")) if isinstance(found, dict) else "unknown"


def mixed_versions(runs: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each scenario that has runs of different versions."""
    return [
        f"runs of {scenario!r} were played by different versions of flmarket: {'; '.join(found)}. Some of the "
        f"differences between them may come from that ({PAGE})"
        for scenario, found in shares(runs).items()
        if len(found) > 1
    ]


def skipped_versions(
    runs: Iterable[tuple[str, str]],  # for each complete run its scenario's name, and its version
) -> list[str]:
    """Return one line for each scenario that has complete runs of another version than this one, which are skipped."""
    here = version()
    return [
        f"complete runs of {scenario!r} were played by another version of flmarket, and are skipped: "
        f"{'; '.join(found)}. This is {here}, whose results may differ; --fresh plays them again ({PAGE})"
        for scenario, found in shares(run for run in runs if run[1] != here).items()
    ]


def other_version(meta: Mapping[str, Any]) -> str | None:
    """Return the sentence that tells of a run that another version played, or None."""
    then, here = played_by(meta), version()
    if then == here:
        return None
    return f"was played by flmarket {then}, and this is {here}: what differs may come from that ({PAGE})"
