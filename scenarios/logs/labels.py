"""The number of labels in each data set of a run, which decides the clients' EMDs and so their bids (eq. 1).

A user's own files may have changed since, or be gone. So meta.json records the numbers, and a run's world is drawn
again from these.
"""

from collections.abc import Container, Mapping
from typing import Any

from fl.data.registry import is_path, load
from flmarket.core.errors import InputError

_MOST = 10_000  # labels of a data set; a meta.json that somebody made up must not cost its reader more


def labels_of(meta: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of labels L by data set, as meta.json records them; without what no run has."""
    found = meta.get("labels")
    if not isinstance(found, dict):  # of an earlier version
        return {}
    return {name: count for name, count in found.items() if type(count) is int and 2 <= count <= _MOST}


def require_same_files(
    meta: Mapping[str, Any],  # what meta.json records
    besides: Container[str],  # names of data sets that are not looked at, as their labels are known
) -> None:
    """Check that a user's own files are those that a run was played on."""
    data = meta.get("data")
    for name, found in data.items() if isinstance(data, dict) else ():
        if name in besides or not is_path(name):
            continue
        if not isinstance(found, dict) or found.get("sha256") != dict(load(name).digests):
            raise InputError(
                f"data set {name!r} has changed since the run was played, which did not record how many labels it had; "
                "put the files back, or run again with --fresh"
            )
