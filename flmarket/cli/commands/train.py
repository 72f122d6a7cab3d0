"""``flmarket train``: trains one agent for each seed, reports progress, and prints the paths of the agents."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket.cli.arguments import (
    Assignments,
    Plugins,
    Quiet,
    Seed,
    load_plugins,
    options_of,
    parse_options,
    scenario_names,
    seeds_of,
    seeds_option,
)
from flmarket.cli.console import command_line, note, result
from flmarket.cli.loading import load_all
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import require_extra
from flmarket.core.tracking import counting, shown
from scenarios.build import Shelf
from scenarios.logs.directory import require_outside_runs
from scenarios.plugin_files import packed
from scenarios.random_markets import drawn
from scenarios.running.pool import as_they_end
from scenarios.running.run_options import TrainOptions, threads

if TYPE_CHECKING:
    from learning.training.records import Row
    from scenarios.train import AgentTraining


@options_of(TrainOptions)
def train(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENARIO...]", help="Scenario files or built-in names.", autocompletion=scenario_names
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="CHECKPOINT", help="NAME.safetensors; the log and saved states go next to it.")
    ],
    draw: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also train in N markets drawn at random (docs/mahdrl.md).")
    ] = None,
    draw_seed: Annotated[int, typer.Option(min=0, metavar="SEED", help="With --draw: which markets are drawn.")] = 0,
    backend: Annotated[str | None, typer.Option(help="Instead of the scenario's training.backend.")] = None,
    seeds: Annotated[str | None, seeds_option("One training for each seed", "0")] = None,
    seed: Seed = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A hyper-parameter. Repeatable.")
    ] = None,
    assignments: Assignments = None,
    plugin: Plugins = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time.")] = 1,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the log for TensorBoard (extra `tensorboard`).")
    ] = None,
    quiet: Quiet = False,
    options: TrainOptions,
) -> None:
    """Train MAHDRL agents: services that learn which clients to hire and what to pay."""
    if draw and assignments:
        raise InputError("--set changes the scenarios that are named; markets drawn with --draw are as they are drawn")
    if draw is None and draw_seed:
        raise InputError(f"--draw-seed {draw_seed}: says which markets are drawn; add --draw N")
    chosen_seeds = seeds_of(seeds, seed, [0])

    require_extra("torch", "flmarket train", "PyTorch", "torch")

    load_plugins(plugin)
    scenarios = load_all(sources or [], assignments or [], {} if backend is None else {"training.backend": backend})
    scenarios += drawn(draw_seed, draw, backend or "surrogate") if draw else []
    if not scenarios:
        raise InputError("nothing to train in: name a scenario, or draw markets with --draw N")

    from learning.training.agent_files import folder_of, has_state, place
    from learning.training.records import announced

    places = [place(out, seed, chosen_seeds) for seed in chosen_seeds]
    for file in (*places, *([] if tensorboard is None else [tensorboard / places[0].stem])):
        require_outside_runs(file)
    with announced(places[:jobs]):  # PyTorch takes seconds to import
        from scenarios.train import plan_training

        training = plan_training(scenarios, options, parse_options(option or []), command_line())
        if len(scenarios) > 1 and not training.options.get("context"):
            note(
                "several markets, and the agent does not see which one it plays: "
                "add --option context=true, and see docs/mahdrl.md for budget=true and hindsight=true"
            )
        for at in places if options.resume and not quiet else ():
            if not at.exists() and not has_state(at):
                note(f"{folder_of(at)}: has no state to resume from; the training starts from the beginning")
        workers = threads(jobs, options.workers)
        one = partial(_train, training, resume=options.resume, workers=workers, quiet=quiet, board=tensorboard)
        try:
            _train_all(one, list(zip(chosen_seeds, places, strict=True)), jobs)
        except KeyboardInterrupt:
            kept = [str(folder_of(at)) for at in places if has_state(at)]
            if kept:
                note(
                    "interrupted; the same command with --resume continues from the last evaluation, whose state is "
                    "kept in"
                )
                for folder in kept:
                    note(f"  {folder}")
            else:
                first = min(options.evaluate_every, options.episodes)
                note(f"interrupted; nothing is kept: the first state is saved after episode {first} (--evaluate-every)")
            raise
    for path in places:
        result(str(path))


def _train_all(one: Callable[..., None], places: Sequence[tuple[int, Path]], jobs: int) -> None:
    """Train an agent for each seed, into its file.

    With plug-ins, one training at a time has a process of its own, too, which is all that they can end.
    """
    if jobs > 1 or packed():
        ended = "the process of a training ended: a plug-in or the system ended it; continue with --resume"
        found = dict(as_they_end(partial(_train_apart, one), places, jobs, packed(), ended))
        errors = [error for place in range(len(places)) if (error := found[place])]
        if errors:
            kind = InputError if isinstance(errors[0], InputError) else RunError
            raise kind("\n".join(dict.fromkeys(map(str, errors))))
        return
    shelf = Shelf()
    for seed, out in places:
        one(seed, out, shelf)


def _train_apart(one: Callable[..., None], place: tuple[int, Path]) -> InputError | RunError | None:
    """Train one agent in a process of its own; return why that failed, which is no reason to end the others."""
    try:
        one(*place, Shelf(), live=False)
    except (InputError, RunError) as error:
        return error
    return None


def _train(
    training: "AgentTraining",
    seed: int,
    out: Path,
    shelf: Shelf,
    *,
    resume: bool,
    workers: int,
    quiet: bool,
    board: Path | None,  # folder of TensorBoard, which gets one folder for each training
    live: bool = True,  # in the command's own process, which shows progress already
) -> None:
    """Train one agent, reporting to TensorBoard as well if that is asked for."""
    from flmarket.trackers import TrainingBoard
    from scenarios.train import run

    episodes = training.plan.episodes
    with ExitStack() as stack:
        if not live and not quiet:
            stack.enter_context(shown(live=False))
        step = stack.enter_context(counting(f"seed {seed}, episodes", episodes))
        boards = [] if board is None else [stack.enter_context(closing(TrainingBoard(board / out.stem)))]

        def report(row: "Row") -> None:
            for each in boards:
                each(row)
            step(row.episode, _numbers(row))
            if row.phase == "evaluate" and not quiet:
                note(f"seed {seed}, episode {row.episode}/{episodes}, evaluate: {_numbers(row)}")

        run(training, seed, out, shelf, resume=resume, workers=workers, report=report)


def _numbers(row: "Row") -> str:
    losses = "".join(f", {name.replace('_', ' ')} {value:.4f}" for name, value in row.losses.items())
    return f"reward {row.reward:.4f}, AUC {row.auc:.4f}, markup {row.markup:.3f}, epsilon {row.epsilon:.2f}{losses}"
