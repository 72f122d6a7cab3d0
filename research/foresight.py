"""Is the best choice for a round the best for the run? No learner and no noise: rounds of `paper` played differently.

    python research/foresight.py --out research/results/foresight.csv [--print]

Each weight w is played in all rounds, and in a single round of a market that plays `dearest` before and after it.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiment import growing, interval_text, markdown, surrogate_market

from des.observation import Observation, Offer
from fl.arrays import FloatArray
from learning.client_selection.selection import Preference
from learning.evaluation import evaluate
from learning.policy import POLICIES, Policy, PolicyContext
from learning.seats import seat
from learning.statistics.intervals import Interval, holm, paired_interval

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
ROUNDS = (5, 15, 25, 35)
"""The single rounds; later, some services have left."""

AHEAD = 20
"""Rounds over which a choice's effect is followed, its own included."""

SEEDS = range(20)


# w = 0 buys data, a high w buys even labels. All runs of a seed share their world and their noise, so that what differs
# in and after the round is the choice's doing alone.
class Weighs(Preference):
    """Ranks by log D - weight * EMD in one round, and plays `dearest` in the others; in all rounds if none is named."""

    privileged = True

    def __init__(self, context: PolicyContext, *, weight: float, only: int | None = None) -> None:
        """Fix the weight, and the round; 0 stands for no round at all."""
        super().__init__(context)
        self._weight, self._only, self._other = weight, only, POLICIES.create("dearest", context)

    def act(self, observation: Observation) -> Offer:
        """Offer the bids to those ranked first."""
        if self._only in (None, observation.round):
            return super().act(observation)
        return self._other.act(observation)

    def keys(self, observation: Observation) -> tuple[FloatArray, ...]:
        """Return the score, negated."""
        hidden = observation.privileged
        assert hidden is not None
        return (self._weight * hidden.emd - np.log(hidden.data_size),)


def register() -> None:
    """Let the rule play under its name."""
    if "weighs" not in POLICIES.registered:
        POLICIES.register("weighs", Weighs)


def fill(path: Path) -> None:
    """Play all weights in all rounds and in single ones, and write a line for each seed."""
    make = surrogate_market("paper")
    names = [spec.name for spec in make(0).services]

    def entrant(weight: float, only: int | None) -> Any:
        options: Mapping[str, Any] = {name: {"weight": weight, "only": only} for name in names}
        return lambda market: _seats(market, names, options)

    entrants = {("always", w, 0): entrant(w, None) for w in WEIGHTS}
    entrants |= {("once", w, n): entrant(w, n) for w in WEIGHTS for n in ROUNDS}
    keys = {f"{kind} {w} {n}": (kind, w, n) for kind, w, n in entrants}
    played = {name: entrants[key] for name, key in keys.items()}
    results = evaluate(make, {"base": entrant(0.0, 0), **played}, SEEDS)
    auc, accuracy = results.auc().mean(axis=-1), results.reported.mean(axis=-1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["weight", "round", "seed", "measure", "gain"])
        for index, name in enumerate(results.entrants[1:], start=1):
            kind, weight, n = keys[name]
            for s, seed in enumerate(results.seeds):
                gain = accuracy[index, s] - accuracy[0, s]
                if kind == "always":
                    writer.writerow([weight, "", seed, "always", f"{auc[index, s] - auc[0, s]:.7f}"])
                else:
                    writer.writerow([weight, n, seed, "at once", f"{gain[n - 1]:.7f}"])
                    writer.writerow([weight, n, seed, "later", f"{gain[n : n - 1 + AHEAD].mean():.7f}"])


def _seats(market: Any, names: list[str], options: Mapping[str, Any]) -> Mapping[str, Policy]:
    return seat(market, dict.fromkeys(names, "weighs"), options)


def table(path: Path) -> str:
    """Return the table of the page: what each weight gains on `dearest`."""
    frame = pd.read_csv(path)
    columns = {
        "always": "AUC, in all rounds", "at once": "in one round: its accuracy",
        "later": f"in one round: the mean of the {AHEAD - 1} after it",
    }  # fmt: skip
    found: dict[tuple[float, str], Interval] = {}
    for weight in WEIGHTS:
        for measure in columns:
            own = frame[(frame.weight == weight) & (frame.measure == measure)]
            values = own.groupby("seed").gain.mean().to_numpy()
            found[weight, measure] = paired_interval(values, np.zeros(len(values)))
    adjusted = dict(zip(found, holm([one.p for one in found.values()]), strict=True))
    rows = []
    for weight in WEIGHTS:
        cells = []
        for measure in columns:
            one = found[weight, measure]
            holds = " †" if adjusted[weight, measure] <= 0.05 else ""
            cells.append(interval_text(one, 5) + holds)
        rows.append([str(weight), *cells])
    run, once = (max(WEIGHTS, key=lambda w: found[w, measure].estimate) for measure in ("always", "at once"))
    wide = frame[frame.measure == "always"].pivot_table("gain", "seed", "weight")
    one = paired_interval(wide[run].to_numpy(), wide[once].to_numpy())
    shown = markdown(("w", *columns.values()), rows)
    return f"{shown}\n\nIn all rounds, w = {run} minus w = {once}: {interval_text(one, 5)}"


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        register()
        fill(arguments.out)
    print(table(arguments.out))


if __name__ == "__main__":
    main()
