"""Prints tables of what `benchmarks/mahdrl.py` measured.

    python benchmarks/mahdrl_table.py docs/results/mahdrl-trainings.csv --by-service

Differences are paired: an agent and a policy play the same markets (with --rotate in the same seat), so each pair of a
training seed and a market seed gives one. The interval is a t interval in which both kinds of seeds are random
(`learning.intervals`); with fewer than three of either kind there is none.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from learning.intervals import paired_interval

AGENT = "mahdrl"
"""The entrant with which the others are compared."""


def summary(path: Path, service: str | None = None) -> str:
    """Return a Markdown table of each entrant: mean AUC, its worst training seed, and `mahdrl`'s AUC minus its own."""
    frame = pd.read_csv(path)
    if service is not None:
        frame = frame[frame.service == service]
    scores: dict[str, Any] = {name: matrix(rows) for name, rows in frame.groupby("entrant", sort=False)}
    best = AGENT if AGENT in scores else None
    title = "policy" if service is None else f"policy, {service}"
    lines = [f"| {title} | AUC | worst training seed | minus |", "|---|---|---|---|"]
    for name, values in sorted(scores.items(), key=lambda item: -item[1].mean()):
        against = ""
        if best not in (None, name) and (len(values) == 1 or len(values) == len(scores[best])):
            interval = paired_interval(scores[best], values)
            against = f"{interval.estimate:+.4f}"
            if interval.known:
                against += f" [{interval.low:+.4f}, {interval.high:+.4f}]"
        worst = f"{values.mean(axis=1).min():.4f} of {len(values)}" if len(values) > 1 else ""
        shown = name.replace("|", "\\|")
        lines.append(f"| {shown} | {values.mean():.4f} | {worst} | {against} |")
    return "\n".join(lines) + "\n"


def matrix(rows: pd.DataFrame, measure: str = "auc") -> Any:
    """Return the mean of a measure over the services, [training seeds, market seeds]; heuristics have one row.

    Raises:
        SystemExit: a run is there twice, or missing.
    """
    keys = ["training_seed", "market_seed", "service"]
    found = rows.fillna({"training_seed": -1})
    wide = found.pivot_table(measure, "training_seed", "market_seed", aggfunc="mean")
    if found.duplicated(keys).any() or len(found) != wide.size * found.service.nunique():
        raise SystemExit(f"{rows.entrant.iloc[0]}: a run is there twice, or missing")
    return np.asarray(wide, dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--by-service", action="store_true", help="also print a table for each service")
    arguments = parser.parse_args()
    print(summary(arguments.results))
    if arguments.by_service:
        for service in pd.read_csv(arguments.results).service.unique():
            print(summary(arguments.results, str(service)))


if __name__ == "__main__":
    main()
