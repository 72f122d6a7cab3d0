"""Which arithmetic trained the models of runs: the compiled kernel's, plain torch's, or none.

The kernel computes the same floats on every machine, torch does not, and the two differ from each other: in the last
bits at first, and as training amplifies them, in accuracies. Wherever runs of different arithmetic meet, the user is
told so.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from fl.counting import counted

PAGE = "docs/reproducibility.md"


def arithmetic(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the code that trained each service's models, by service, as meta.json names it; empty without training."""
    found = meta.get("kernel")
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def mixtures(runs: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return one line for each scenario that has runs of different arithmetic.

    Args:
        runs: for each run its scenario's name, and its ``arithmetic``.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for scenario, used in runs:
        if used:
            counts[scenario][", ".join(sorted(set(used.values())))] += 1
    found = []
    for scenario, kernels in counts.items():
        if len(kernels) > 1:
            shares = "; ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(kernels.items()))
            found.append(
                f"runs of {scenario!r} were trained in different arithmetic: {shares}. Part of what they differ in "
                f"comes from that ({PAGE})"
            )
    return found
