"""``flmarket suite``: plays policies in the frozen benchmark, and compares submissions."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from flmarket.benchmark.suite.board import details, introduction, leaderboard, tables
from flmarket.benchmark.suite.board import page as page_of
from flmarket.benchmark.suite.scoring import by_method, standings
from flmarket.benchmark.suite.submission import Submission, continued, entry, keep, play, read_all
from flmarket.cli.arguments import Plugins, Quiet, Seed, load_plugins, policy_names, seeds_of, seeds_option
from flmarket.cli.console import command_line, interruptible, note, result
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for
from flmarket.core.rich_console import draw, stdout
from flmarket.core.text import counted
from flmarket.core.text_table import TextTable, markdown_literal
from scenarios.file.policy_choice import PolicyChoice
from scenarios.logs.directory import require_folder_place, require_place
from scenarios.suite.frozen import MODES, read


def suite(
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="POLICY...", help="NAME or NAME:CHECKPOINT.", autocompletion=policy_names),
    ] = None,
    mode: Annotated[
        Literal["resident", "visitor"] | None,
        typer.Option(help="All services play the policy, or one seat after the other does; both if not given."),
    ] = None,
    markets: Annotated[str | None, typer.Option(metavar="NAME,...", help="The suite's, all if not given.")] = None,
    seeds: Annotated[str | None, seeds_option("Which of the suite's market seeds", "all", "`2`: the first two")] = None,
    seed: Seed = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A common name: the policies are trainings of one method."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE.json|FOLDER", help="The submission, or the folder for one of each policy.")
    ] = Path("submissions"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Score again what has been scored.")] = False,
    board: Annotated[
        list[Path] | None,
        typer.Option(
            "--leaderboard",
            metavar="PATH",
            help="Compare submissions, in a file or folder: in all of the suite, or where --mode, --markets and "
            "--seeds say. Repeatable.",
        ),
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as an HTML page.")] = None,
    plugin: Plugins = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in its own process.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Play policies in the frozen suite of markets, and compare them: 0 is `random`, 1 a privileged reference.

    What has been played is in the submission, and is not played again. --leaderboard reads submissions alone.
    """
    if not policies and not board:
        raise InputError("name a policy to play, or submissions to compare with --leaderboard")
    load_plugins(plugin)
    frozen = read()
    played: list[Submission] = []
    asked = _seeds_of(seeds, seed, frozen.seeds)
    cells = frozen.cells(
        (mode,) if mode else MODES,
        None if markets is None else [name.strip() for name in markets.split(",")],
        asked,
    )
    if not cells:
        raise InputError(f"nothing to {'play' if policies else 'compare'}: a market with one service has no visitors")
    if policies:
        begun: dict[Path, tuple[str, Submission]] = {}
        for policy in dict.fromkeys(policies):
            label = PolicyChoice.parse(policy, "policy").label
            path = out if out.suffix == ".json" else out / f"{label}.json"
            if path in begun:
                raise InputError(f"--out {path}: is one file for several policies; name a folder")
            new = entry(policy, frozen, method)
            begun[path] = policy, new if fresh else continued(path, new, frozen)
        by_method(submission for _, submission in begun.values())  # what cannot be compared is not played
        require_folder_place(next(iter(begun)).parent)
    if page is not None:  # which may be in the folder that has just been made
        require_place(page)
    if policies:
        for path, (policy, submission) in begun.items():
            if fresh:
                submission.write(path, frozen)
            with interruptible("plays what is missing"):
                kept = partial(keep, path, suite=frozen)
                played.append(play(policy, frozen, cells=cells, begun=submission, jobs=jobs, keep=kept))
            if not quiet:
                note(f"{path}: {counted(len(played[-1].results), 'run')}")
    shown = standings(read_all(board, frozen), frozen, cells) if board else standings(played, frozen)
    parts = tables(shown) if board else [*map(details, shown), leaderboard(shown, "All markets")]
    chosen = {"mode": mode, "markets": markets, "seeds": ",".join(map(str, asked)) if seeds or seed else ""}
    part = "; ".join(f"{key} {value}" for key, value in chosen.items() if value) if board else ""
    _print(introduction(shown, frozen, part), parts)
    if page is not None:
        with asked_for(page) as file:
            file.write(page_of(shown, frozen, command_line(), part))


def _seeds_of(seeds: str | None, seed: Sequence[int] | None, frozen: Sequence[int]) -> Sequence[int]:
    """Return the seeds that are asked for; a count takes the first of the suite's."""
    if seed or seeds is None or not seeds.strip().isdecimal():
        return seeds_of(seeds, seed, frozen)
    if not 1 <= int(seeds) <= len(frozen):
        raise InputError(f"--seeds {seeds}: a count is 1 to {len(frozen)}; a seed of its own is --seed {frozen[0]}")
    return frozen[: int(seeds)]


def _print(texts: Sequence[str], tables: Sequence[TextTable]) -> None:
    console = stdout()
    if not sys.stdout.isatty():
        titled = (text for it in tables for text in (f"**{markdown_literal(it.title)}**", it.markdown()))
        result("\n\n".join([*texts, *titled]))
        return
    for text in texts:
        console.print(text, markup=False, highlight=False)
    for table in tables:
        draw(console, table)
