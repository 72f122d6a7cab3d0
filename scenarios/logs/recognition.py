"""Whether a complete run is the one that is asked for: undamaged, and played with the same agents and plug-ins."""

from collections.abc import Mapping

from scenarios.logs.columns import tables_in
from scenarios.logs.directory import META, PLAY_CHANGED, ChangedError, RunDirectory, RunDirectoryError


def check_is(
    directory: RunDirectory,  # the run's
    *,
    digest: str,  # this and the next two: what the path stands for
    policy: str,
    seed: int,
    # digests of the learned policies, by service. They are not in the path where ``--policy`` chose them.
    agents: Mapping[str, str],
    # the plug-in files that the run depends on, by what it takes from them; the path knows their names
    plugins: Mapping[str, Mapping[str, str]],
) -> None:
    """Check that a complete run is the one that its path stands for, undamaged, and of today's columns."""
    directory.require_whole(digests=True)
    for table in tables_in(directory.path).values():
        table.check(directory.path)
    meta = directory.meta()
    for key, wanted in (("hash", digest), ("policy", policy), ("seed", seed)):
        if meta[key] != wanted:
            raise RunDirectoryError(
                f"{directory.path / META}: belongs to a run with {key} {meta[key]!r}, not {wanted!r}; "
                "choose another --out, or run again with --fresh"
            )
    if meta["agents"] != agents:
        raise ChangedError(f"{directory.path / META}: belongs to a run with another learned agent; {PLAY_CHANGED}")
    played = meta["plugins"]
    for thing in sorted({*played, *plugins}):
        if played.get(thing, {}).get("sha256") != plugins.get(thing, {}).get("sha256"):
            raise ChangedError(
                f"{directory.path / META}: belongs to a run with a different version of {thing}; {PLAY_CHANGED}"
            )
