"""The arithmetic that trained the models of runs: the compiled kernel's, plain torch's, or none.

The kernel computes the same floats on every machine, torch does not, and the two differ from each other: in the last
bits at first, and as training amplifies them, in accuracies. The user is warned
wherever runs of different arithmetic meet.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from fl.backends import BACKENDS, REAL
from flmarket.core.counting import counted

PAGE = "docs/reproducibility.md"

UNTRAINED = frozenset(backend.name for backend in BACKENDS.values() if not backend.trains)


def arithmetic(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the code that trained each service's models, by service, as meta.json names it; empty without training."""
    found = meta.get("kernel")
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def mixtures(
    runs: Iterable[tuple[str, Mapping[str, str]]],  # for each run its scenario's name, and its ``arithmetic``
) -> list[str]:
    """Return one line for each scenario whose runs were trained in different arithmetic, or are not all trained."""
    kinds = [(scenario, set(used.values())) for scenario, used in runs if used]
    trained = [(scenario, used - UNTRAINED) for scenario, used in kinds]
    backends = shares((scenario, ", ".join(sorted(used & UNTRAINED)) or REAL.name) for scenario, used in kinds)
    kernels = shares((scenario, ", ".join(sorted(used))) for scenario, used in trained if used)
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


def shares(runs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return by scenario how many of its runs are of which kind, in words: ``fused (3 runs)``."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for scenario, kind in runs:
        counts[scenario][kind] += 1
    return {
        scenario: [f"{kind} ({counted(count, 'run')})" for kind, count in sorted(kinds.items())]
        for scenario, kinds in counts.items()
    }
