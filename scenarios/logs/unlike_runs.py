"""Runs that differ in more than was asked for: in the arithmetic that trained them, or in what played them.

The compiled kernel computes the same floats on every machine, torch does not, and the two differ from each other: in
the last bits at first, and as training amplifies them, in accuracies. Another version of flmarket may play the same
scenario and seed otherwise, and so may another version of an agent or a plug-in. Where such runs meet, the user is
warned; complete runs of another version of flmarket are skipped as complete, so that their results are not lost.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fl.backends import BACKENDS, REAL
from flmarket.core.installation import version
from flmarket.core.text import counted

Metas = Sequence[tuple[str, Mapping[str, Any]]]  # of each run its scenario's name and its meta.json

PAGE = "docs/reproducibility.md"

_UNTRAINED = frozenset(backend.name for backend in BACKENDS.values() if not backend.trains)


def played_by(meta: Mapping[str, Any]) -> str:
    """Return the version of flmarket that played a run."""
    return str(meta["versions"]["flmarket"])


def mixed_arithmetic(runs: Metas) -> list[str]:
    """Return one line for each scenario whose runs were trained in different arithmetic, or are not all trained."""
    kinds = [(scenario, {*meta["kernel"].values()}) for scenario, meta in runs if meta["kernel"]]
    backends = _shares((scenario, ", ".join(sorted(used & _UNTRAINED)) or REAL.name) for scenario, used in kinds)
    trained = ((scenario, ", ".join(sorted(used - _UNTRAINED))) for scenario, used in kinds)
    kernels = _shares((scenario, used) for scenario, used in trained if used)
    return [
        *(
            f"runs of {scenario!r} have different values of training.backend: {'; '.join(found)}. Compare accuracies "
            "only between runs of one backend (docs/surrogate.md)"
            for scenario, found in backends.items()
            if len(found) > 1
        ),
        *(
            f"runs of {scenario!r} were trained with different arithmetic: {'; '.join(found)}. Some of the differences "
            f"between them come from that ({PAGE})"
            for scenario, found in kernels.items()
            if len(found) > 1
        ),
    ]


def mixed_versions(runs: Metas) -> list[str]:
    """Return one line for each scenario that has runs of different versions."""
    return [
        f"runs of {scenario!r} were played by different versions of flmarket: {'; '.join(found)}. Some of the "
        f"differences between them may come from that ({PAGE})"
        for scenario, found in _shares((scenario, played_by(meta)) for scenario, meta in runs).items()
        if len(found) > 1
    ]


def mixed_players(runs: Metas) -> list[str]:
    """Return one line for each policy of a scenario of whose runs some were played by another agent or plug-in."""
    found: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for scenario, meta in runs:
        plugins = {thing: record["sha256"] for thing, record in meta["plugins"].items()}
        for thing, digest in (meta["agents"] | plugins).items():
            found[scenario, meta["hash"], meta["policy"]][thing].add(digest)
    return [
        f"runs of {scenario!r} with {policy!r} were played with different versions of {', '.join(mixed)}, so their "
        "means are those of no single policy; play them again with the option fresh-changed"
        for (scenario, _, policy), things in found.items()
        if (mixed := [thing for thing, digests in things.items() if len(digests) > 1])
    ]


def skipped_versions(runs: Metas) -> list[str]:
    """Return one line for each scenario that has complete runs of another version than this one, which are skipped."""
    here = version()
    others = _shares((scenario, then) for scenario, meta in runs if (then := played_by(meta)) != here)
    return [
        f"complete runs of {scenario!r} were played by another version of flmarket, and are skipped: "
        f"{'; '.join(found)}. This is {here}, whose results may differ; the option fresh plays them again ({PAGE})"
        for scenario, found in others.items()
    ]


def other_version(meta: Mapping[str, Any]) -> str | None:
    """Return the sentence that tells of a run that another version played, or None."""
    then, here = played_by(meta), version()
    if then == here:
        return None
    return f"was played by flmarket {then}, and this is {here}: what differs may come from that ({PAGE})"


def _shares(runs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return by scenario how many of its runs are of which kind, in words: ``fused (3 runs)``."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for scenario, kind in runs:
        counts[scenario][kind] += 1
    return {
        scenario: [f"{kind} ({counted(count, 'run')})" for kind, count in sorted(kinds.items())]
        for scenario, kinds in counts.items()
    }
