"""Does a rule that changes its mind once do what `mahdrl` does in `paper`? On the surrogate; notebook/needs-rl.md.

python research/two_phases.py --out research/results/two-phases.csv [--print]
python research/two_phases.py --out tuning.csv --tune                  # how the rule's numbers were chosen
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiment import fill, gain, growing, interval_text, markdown, starred, surrogate_market

from des.observation import Observation
from fl.arrays import FloatArray
from learning.client_selection.selection import Preference
from learning.evaluation import evaluate, everywhere
from learning.policy import POLICIES, PolicyContext

SEEDS, TUNING = range(20), range(100, 106)
BASELINE, RULE = "dearest", "two-phases"
NEAR = 0.0003

TUNED: Mapping[str, float] = {"until": 30, "early": 1.0, "late": 1.5, "price": 0.6}
"""The best of ``GRID`` in the markets of ``TUNING``."""

GRID = tuple(
    {"until": until, "early": early, "late": late, "price": price}
    for until in (10, 15, 20, 30)
    for early in (0.5, 1.0)
    for late in (0.5, 1.0, 1.5, 2.0)
    for price in (0.5, 0.6, 0.75, 0.85, 1.0)
)

Entrants = Mapping[str, tuple[str, Mapping[str, Any]]]

ENTRANTS: Entrants = {
    "mahdrl": ("mahdrl", {}),
    "mahdrl, curve = false": ("mahdrl", {"curve": False}),
    "two phases": (RULE, TUNED),
    "one phase, w = 1": (RULE, {"until": 0, "early": 1.0, "late": 1.0, "price": 0.0}),
    "oracle": ("oracle", {}),
    BASELINE: (BASELINE, {}),
}
"""Policies and their options, by their names in the table."""

CANDIDATES: Entrants = {" ".join(f"{key}={value:g}" for key, value in it.items()): (RULE, it) for it in GRID}
"""Candidates for the rule's numbers."""


# In `paper` a bid tells D and EMD, so that the rule could do without the privilege.
class TwoPhases(Preference):
    """Ranks by log D - w * EMD - p * log(bid), where w and p change once."""

    privileged = True

    def __init__(self, context: PolicyContext, *, until: int, early: float, late: float, price: float) -> None:
        """Fix the last round of the first phase, w in both phases, and p in the second."""
        super().__init__(context)
        self._until, self._first, self._then = until, (early, 0.0), (late, price)

    def keys(self, observation: Observation) -> tuple[FloatArray, ...]:
        """Return the score, negated."""
        hidden = observation.privileged
        assert hidden is not None
        weight, price = self._first if observation.round <= self._until else self._then
        return (weight * hidden.emd + price * np.log(observation.own_bids) - np.log(hidden.data_size),)


def register() -> None:
    """Let the rule play under its name."""
    if RULE not in POLICIES.registered:
        POLICIES.register(RULE, TwoPhases)


def play(task: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return a line of the CSV for each market seed: those of ``TUNING`` for candidates, else ``SEEDS``."""
    register()
    (name,) = task
    if name in ENTRANTS:
        return played(name, *ENTRANTS[name], SEEDS)
    return played(name, *CANDIDATES[name], TUNING)


def played(name: str, policy: str, options: Mapping[str, Any], seeds: Iterable[int]) -> list[tuple[Any, ...]]:
    """Return a line for each seed of `paper` in which all services play a policy."""
    results = evaluate(surrogate_market("paper"), {name: everywhere(policy, options)}, list(seeds))
    aucs = results.auc()[0].mean(axis=-1)
    return [(name, seed, f"{auc:.6f}") for seed, auc in zip(results.seeds, aucs, strict=True)]


def table(path: Path) -> str:
    """Return the Markdown table of a file: mean AUC, and what is gained on the baseline, paired by seed; best first."""
    register()
    wide = pd.read_csv(path).pivot_table("auc", "seed", "entrant")
    rows = []
    for name in wide.mean().sort_values(ascending=False).index:
        shown = interval_text(gain(wide, name, BASELINE)) if name != BASELINE else ""
        rows.append([starred(name, ENTRANTS[name][0]), f"{wide[name].mean():.4f}", shown])
    return markdown(("entrant", "AUC", f"minus `{BASELINE}`"), rows)


def best(path: Path) -> str:
    """Return the five best candidates of a file, with their mean AUC, and how many are nearly as good."""
    means = pd.read_csv(path).groupby("entrant").auc.mean().sort_values(ascending=False)
    near = int((means > means.max() - NEAR).sum())
    lines = [f"{auc:.4f}  {name}" for name, auc in means.head().items()]
    return "\n".join([*lines, f"{near} of {len(means)} are within {NEAR} of the best"])


def main() -> None:
    parser = growing(__doc__)
    parser.add_argument("--tune", action="store_true", help="play the candidates in other markets, and print the best")
    arguments = parser.parse_args()
    if not arguments.print:
        chosen = CANDIDATES if arguments.tune else ENTRANTS
        fill(arguments.out, ["entrant", "seed", "auc"], [(name,) for name in chosen], play, arguments.jobs)
    print(best(arguments.out) if arguments.tune else table(arguments.out))


if __name__ == "__main__":
    main()
