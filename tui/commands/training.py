"""``flmarket train``: trains one agent for each seed and narrates it."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from learning.mahdrl.training_log import Row
from scenarios.build import Shelf
from scenarios.train import Training, place, run


@dataclass(frozen=True, slots=True)
class Manner:
    """How trainings are done, besides what is trained.

    Attributes:
        resume: go on where one was stopped.
        workers: threads that train clients, for each training.
        quiet: no progress.
        tensorboard: folder that gets one of its own for each training.
    """

    resume: bool
    workers: int
    quiet: bool
    tensorboard: Path | None


def train_all(
    training: Training,
    seeds: Sequence[int],
    out: Path,
    *,
    resume: bool,
    jobs: int,
    workers: int | None,
    quiet: bool,
    tensorboard: Path | None = None,
) -> list[Path]:
    """Train an agent for each seed; return the files, in the order of the seeds."""
    places = [place(out, seed, seeds) for seed in seeds]
    cores = len(os.sched_getaffinity(0))
    threads = max(1, cores // jobs) if workers is None else workers
    manner = Manner(resume, threads, quiet, tensorboard)
    if jobs > 1:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            running = [pool.submit(_one, training, seed, at, manner) for seed, at in zip(seeds, places, strict=True)]
            for future in running:
                future.result()
        return places
    shelf, errors = Shelf(), Console(stderr=True)
    for seed, at in zip(seeds, places, strict=True):
        if quiet or not errors.is_terminal:
            _one(training, seed, at, manner, shelf)
        else:
            _live(training, seed, at, manner, shelf, errors)
    return places


def _one(training: Training, seed: int, out: Path, manner: Manner, shelf: Shelf | None = None) -> None:
    """Train one agent, telling of it in plain lines."""
    tell = _ignore if manner.quiet else _plain(Console(stderr=True), seed, training.plan.episodes)
    _run(training, seed, out, manner, shelf or Shelf(), tell)


def _run(training: Training, seed: int, out: Path, manner: Manner, shelf: Shelf, tell: Callable[[Row], None]) -> None:
    """Train one agent, telling TensorBoard as well where that is wanted."""
    if manner.tensorboard is None:
        run(training, seed, out, shelf, resume=manner.resume, workers=manner.workers, tell=tell)
        return
    from learning.mahdrl.board import Board

    with closing(Board(manner.tensorboard / out.stem)) as board:

        def tell_both(row: Row) -> None:
            board(row)
            tell(row)

        run(training, seed, out, shelf, resume=manner.resume, workers=manner.workers, tell=tell_both)


def _live(training: Training, seed: int, out: Path, manner: Manner, shelf: Shelf, console: Console) -> None:
    """Train one agent under a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    evaluated = _plain(console, seed, training.plan.episodes)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"seed {seed}", total=training.plan.episodes)

        def tell(row: Row) -> None:
            progress.update(task, completed=row.episode, description=f"seed {seed}: {_numbers(row)}")
            if row.phase == "evaluate":
                evaluated(row)

        _run(training, seed, out, manner, shelf, tell)


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
