"""The arithmetic that trained the models of runs: the compiled kernel's, plain torch's, or none.

The kernel computes the same floats on every machine, torch does not, and the two differ from each other: in the last
bits at first, and as training amplifies them, in accuracies. The user is warned
wherever runs of different arithmetic meet.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from flmarket.core.counting import counted

PAGE = "docs/reproducibility.md"


def arithmetic(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the code that trained each service's models, by service; empty without training."""
    return dict(meta["kernel"])


def mixtures(
    runs: Iterable[tuple[str, Mapping[str, str]]],  # for each run its scenario's name, and its ``arithmetic``
) -> list[str]:
    """Return one line for each scenario that has runs of different arithmetic."""
    found = shares((scenario, ", ".join(sorted(set(used.values())))) for scenario, used in runs if used)
    return [
        f"runs of {scenario!r} were trained in different arithmetic: {'; '.join(kernels)}. Part of what they differ in "
        f"comes from that ({PAGE})"
        for scenario, kernels in found.items()
        if len(kernels) > 1
    ]


def shares(runs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return by scenario how many of its runs are of which kind, in words: ``fused (3 runs)``."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for scenario, kind in runs:
        counts[scenario][kind] += 1
    return {
        scenario: [f"{kind} ({counted(count, 'run')})" for kind, count in sorted(kinds.items())]
        for scenario, kinds in counts.items()
    }
