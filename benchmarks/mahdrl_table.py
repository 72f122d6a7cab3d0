"""Prints tables of what `benchmarks/mahdrl.py` measured.

    python benchmarks/mahdrl_table.py docs/results/mahdrl-trainings.csv --by-service

Differences are paired: an agent and a policy play the same markets (with --rotate in the same seat), so each pair of a
training seed and a market seed gives one. The interval is a t interval in which both kinds of seeds are random
(`learning.intervals`); with fewer than three of either kind there is none.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from learning.intervals import Interval, paired_interval

AGENT = "mahdrl"
"""The entrant with which the others are compared."""

MEASURES = {
    "auc": ("AUC", 4),
    "final": ("accuracy after the last round", 4),
    "rounds_to_target": ("rounds to target", 1),
}
"""Their titles, and the digits that they are told with."""


def summary(path: Path, service: str | None = None) -> str:
    """Return a Markdown table of what each entrant reaches, and of `mahdrl` minus it in all measures."""
    frame = pd.read_csv(path)
    if service is not None:
        frame = frame[frame.service == service]
    entrants = by_entrant(frame)
    measures = [measure for measure in MEASURES if measure in frame]  # accuracies after the last round came later
    title = "policy" if service is None else f"policy, {service}"
    titles = [title, "AUC", "worst training seed", *(f"minus, {MEASURES[measure][0]}" for measure in measures)]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        values = matrix(rows)
        worst = f"{values.mean(axis=1).min():.4f} of {len(values)}" if len(values) > 1 else ""
        gains = [_minus(entrants, name, measure) for measure in measures]
        cells = [name.replace("|", "\\|"), f"{values.mean():.4f}", worst, *gains]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _minus(entrants: Mapping[str, pd.DataFrame], name: str, measure: str) -> str:
    """Return `mahdrl` minus an entrant, with its interval; nothing where they cannot be paired."""
    if AGENT not in entrants or name == AGENT:
        return ""
    own, other = matrix(entrants[AGENT], measure), matrix(entrants[name], measure)
    if len(other) not in (1, len(own)):
        return ""
    return told(paired_interval(own, other), MEASURES[measure][1])


def told(gain: Interval, digits: int) -> str:
    """Return a difference with its interval, if there is one."""
    ends = f" [{gain.low:+.{digits}f}, {gain.high:+.{digits}f}]" if gain.known else ""
    return f"{gain.estimate:+.{digits}f}{ends}"


def by_entrant(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each entrant, in the order of the frame."""
    return {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}


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
