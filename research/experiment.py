"""The experiments' command line, results that grow in a CSV file, and differences as tables show them."""

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fl.arrays import FloatArray
from learning.policy import POLICIES
from learning.seats import MarketFactory
from learning.statistics.intervals import Interval, paired_interval
from scenarios.build import market_factory
from scenarios.loader import load

SURROGATE = "training.backend=surrogate"


def command_line(doc: str | None) -> argparse.ArgumentParser:
    """Return a command line that prints a module's docstring as its help."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def growing(doc: str | None) -> argparse.ArgumentParser:
    """Return the command line of an experiment whose file of results grows."""
    found = command_line(doc)
    found.add_argument("--out", type=Path, required=True, help="the CSV file of results")
    found.add_argument("--jobs", type=int, default=1, help="processes that play at a time")
    found.add_argument("--print", action="store_true", help="play nothing, print the tables")
    return found


def surrogate_market(scenario: str, *changes: str) -> MarketFactory:
    """Return what makes a built-in scenario's markets on the surrogate."""
    return market_factory(load(scenario, [SURROGATE, *changes]), workers=0)


def fill(
    out: Path,
    columns: Sequence[str],  # of the file
    tasks: Iterable[tuple[str, ...]],  # all that the file is to hold
    play: Callable[[tuple[str, ...]], Iterable[Sequence[Any]]],  # returns a task's rows; called in other processes
    jobs: int,
    key: Sequence[str] = (),  # the columns that name the task; the first ones if not given
) -> None:
    """Play the tasks that a file lacks, and add their rows as they are done: an experiment that is stopped resumes."""
    tasks, fresh = list(tasks), not out.exists()
    names = list(key or columns[: len(tasks[0])])
    kept = pd.DataFrame() if fresh else pd.read_csv(out, dtype=str, keep_default_na=False)[names]
    done = set(kept.itertuples(index=False, name=None))
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", newline="") as file, ProcessPoolExecutor(jobs) as pool:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(columns)
        for rows in pool.map(play, [task for task in tasks if task not in done]):
            writer.writerows(rows)
            file.flush()


# ---- tables


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def starred(name: str, policy: str) -> str:
    """Return a name with the star that tables give to privileged policies."""
    return f"{name} \\*" if POLICIES.load(policy).privileged else name


def plus_minus(found: Interval, digits: int = 4) -> str:
    """Return a difference and half of its interval, if there is one."""
    half = f" ± {(found.high - found.low) / 2:.{digits}f}" if found.known else ""
    return f"{found.estimate:+.{digits}f}{half}"


def interval_text(found: Interval, digits: int = 4) -> str:
    """Return a difference with the ends of its interval, if there is one."""
    ends = f" [{found.low:+.{digits}f}, {found.high:+.{digits}f}]" if found.known else ""
    return f"{found.estimate:+.{digits}f}{ends}"


def gain(runs: pd.DataFrame, one: str, other: str) -> Interval:
    """Return the mean paired difference of two columns, whose rows are seeds."""
    return paired_interval(runs[one].to_numpy(), runs[other].to_numpy())


def by_entrant(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each entrant, in the order of the frame."""
    return {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}


def matrix(rows: pd.DataFrame, measure: str = "auc") -> FloatArray:
    """Return the mean of a measure over the services, [training seeds, market seeds]; heuristics have one row."""
    keys = ["training_seed", "market_seed", "service"]
    found = rows.fillna({"training_seed": -1})
    wide = found.pivot_table(measure, "training_seed", "market_seed", aggfunc="mean")
    if found.duplicated(keys).any() or len(found) != wide.size * found.service.nunique():
        raise SystemExit(f"{rows.entrant.iloc[0]}: a run is there twice, or missing")
    return np.asarray(wide, dtype=np.float64)
