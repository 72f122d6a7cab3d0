"""CSV files of results that grow: what a file has already is not played again, and a run that is stopped continues."""

import csv
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd


def fill(
    out: Path,
    columns: Sequence[str],
    tasks: Iterable[tuple[str, ...]],
    play: Callable[[tuple[str, ...]], Iterable[Sequence[Any]]],
    jobs: int,
) -> None:
    """Play the tasks that a file lacks, and add their rows to it as they are done.

    Args:
        out: the file.
        columns: of the file; the first ones name the task.
        tasks: all that the file is to hold.
        play: returns the rows of a task; called in other processes.
        jobs: how many of them.
    """
    tasks, fresh = list(tasks), not out.exists()
    names = list(columns[: len(tasks[0])])
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
