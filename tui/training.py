"""``flmarket train``: trains one agent for each seed and narrates it."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from learning.mahdrl.training_log import Row
from scenarios.build import Shelf
from scenarios.train import Training, place, run


def train_all(
    training: Training, seeds: Sequence[int], out: Path, *, resume: bool, jobs: int, workers: int | None, quiet: bool
) -> list[Path]:
    """Train an agent for each seed; return the files, in the order of the seeds."""
    places = [place(out, seed, seeds) for seed in seeds]
    cores = len(os.sched_getaffinity(0))
    threads = max(1, cores // jobs) if workers is None else workers
    if jobs > 1:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            running = [
                pool.submit(_one, training, seed, at, resume=resume, workers=threads, quiet=quiet)
                for seed, at in zip(seeds, places, strict=True)
            ]
            for future in running:
                future.result()
        return places
    shelf, errors = Shelf(), Console(stderr=True)
    for seed, at in zip(seeds, places, strict=True):
        if quiet or not errors.is_terminal:
            _one(training, seed, at, resume=resume, workers=threads, quiet=quiet, shelf=shelf)
        else:
            _live(training, seed, at, errors, shelf, resume=resume, workers=threads)
    return places


def _one(
    training: Training,
    seed: int,
    out: Path,
    *,
    resume: bool,
    workers: int,
    quiet: bool,
    shelf: Shelf | None = None,
) -> None:
    """Train one agent, telling of it in plain lines."""
    tell = _ignore if quiet else _plain(Console(stderr=True), seed, training.plan.episodes)
    run(training, seed, out, shelf or Shelf(), resume=resume, workers=workers, tell=tell)


def _live(
    training: Training, seed: int, out: Path, console: Console, shelf: Shelf, *, resume: bool, workers: int
) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    evaluated = _plain(console, seed, training.plan.episodes)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"seed {seed}", total=training.plan.episodes)

        def tell(row: Row) -> None:
            progress.update(task, completed=row.episode, description=f"seed {seed}: {_numbers(row)}")
            if row.phase == "evaluate":
                evaluated(row)

        run(training, seed, out, shelf, resume=resume, workers=workers, tell=tell)


def _plain(console: Console, seed: int, episodes: int) -> Callable[[Row], None]:
    """Return what prints a line for every evaluation and every tenth episode."""

    def tell(row: Row) -> None:
        if row.phase == "evaluate" or row.episode % 10 == 0:
            text = f"seed {seed}, episode {row.episode}/{episodes}, {row.phase}: {_numbers(row)}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    return tell


def _numbers(row: Row) -> str:
    losses = "".join(f", {name.replace('_', ' ')} {value:.4f}" for name, value in row.losses.items())
    return f"reward {row.reward:.4f}, AUC {row.auc:.4f}, markup {row.markup:.3f}, epsilon {row.epsilon:.2f}{losses}"


def _ignore(_: Row) -> None:
    """Say nothing."""
