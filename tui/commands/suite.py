"""``flmarket suite``: plays policies in the frozen benchmark, and reads what others played."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fl.counting import counted
from fl.errors import InputError
from fl.tracking import counting
from tui.commands.arguments import Plugins, Quiet, Seed, load_plugins, seeds_of, seeds_option
from tui.commands.console import draw, note, result, stdout

if TYPE_CHECKING:
    from scenarios.judging.render import Table
    from scenarios.suite.continuing import Begun
    from scenarios.suite.frozen import Cell, Suite
    from scenarios.suite.submission import Submission


def suite(
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY...", help="NAME, NAME:CHECKPOINT, or FILE.py:NAME for one that a plug-in file registers."
        ),
    ] = None,
    mode: Annotated[
        Literal["resident", "visitor"] | None,
        typer.Option(help="All services play the policy, or one seat after the other does; both if not given."),
    ] = None,
    markets: Annotated[str | None, typer.Option(metavar="NAME,...", help="The suite's, all if not given.")] = None,
    seeds: Annotated[str | None, seeds_option("Which of the suite's market seeds", "all")] = None,
    seed: Seed = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the policies are called together: trainings of one method."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE.json|FOLDER", help="The submission, or the folder for one of each policy.")
    ] = Path("submissions"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over what is there.")] = False,
    board: Annotated[
        list[Path] | None,
        typer.Option("--leaderboard", metavar="PATH", help="Compare submissions, in a file or folder. Repeatable."),
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page of it.")] = None,
    plugin: Plugins = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in its own process.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Play policies in the frozen suite of markets, and compare them: 0 is `random`, 1 a privileged best response.

    What has been played is in the submission, and is not played again. --leaderboard reads submissions alone.
    """
    from fl.files import asked_for
    from scenarios.suite.board import details, introduction, leaderboard, tables
    from scenarios.suite.board import page as page_of
    from scenarios.suite.continuing import Begun
    from scenarios.suite.frozen import MODES, read
    from scenarios.suite.scoring import by_method, standings
    from scenarios.suite.submission import read_all

    if not policies and not board:
        raise InputError("name a policy to play, or submissions to compare with --leaderboard")
    limits = {"--mode": mode, "--markets": markets, "--seeds": seeds, "--seed": seed or None}
    if not policies and (given := [option for option, value in limits.items() if value is not None]):
        raise InputError(f"{given[0]} says what is played, and nothing is: --leaderboard shows all that was")
    if page is not None and not policies:
        _require_page(page, board or ())
    frozen = read()
    played: list[Submission] = []
    if policies:
        chosen = frozen.cells(
            (mode,) if mode else MODES,
            None if markets is None else tuple(name.strip() for name in markets.split(",")),
            seeds_of(seeds, seed, frozen.seeds),
        )
        if not chosen:
            raise InputError("nothing to play: in a market with one service, nobody is a visitor")
        if method is not None and not (method.strip() and method.isprintable()):
            raise InputError(f"--method {method!r}: must be a name")
        names = _load(policies, plugin, out)
        begun = [Begun.of(policy, frozen, out, method=method, fresh=fresh) for policy in names]
        by_method(it.submission for it in begun)  # what cannot be compared is not played
        if page is not None:  # not before: it may be for the submissions' folder, which is there only now
            _require_page(page, [*(board or ()), *(it.path for it in begun)])
        played = [_play(it, frozen, chosen, jobs, quiet) for it in begun]
    shown = standings(read_all(board, frozen) if board else played, frozen)
    parts = tables(shown) if board else [(f"{it.method} in each market", details(it)) for it in shown]
    if not board:
        parts.append(("All markets", leaderboard(shown)))
    _print(introduction(shown, frozen), parts)
    if page is not None:
        with asked_for(page) as file:
            file.write(page_of(shown, frozen, shlex.join(["flmarket", *sys.argv[1:]])))


def _require_page(page: Path, submissions: Sequence[Path]) -> None:
    """Refuse a page that cannot be written, or would take the place of a submission, in a file or in a folder."""
    from scenarios.logs.outside import require_place

    real = Path(os.path.realpath(page))
    beside = {Path(os.path.realpath(path)) for path in submissions}
    if real in beside or (real.suffix == ".json" and real.parent in beside):
        raise InputError(f"--html {page}: is the place of a submission, which it would replace; name another file")
    require_place(page)


def _load(policies: Sequence[str], plugins: Sequence[Path] | None, out: Path) -> list[str]:
    """Load plug-in files; return the policies by the names that they are registered with."""
    if out.suffix == ".json" and len(policies) > 1:
        raise InputError(f"--out {out}: is one file for {len(policies)} policies; name a folder")
    if file := next((policy for policy in policies if policy.endswith(".py")), None):
        raise InputError(f"{file}: is a file; name one of its policies, too: {file}:NAME")
    asked = [_FILE.fullmatch(policy) for policy in policies]
    files = dict.fromkeys([*(plugins or ()), *(Path(it["file"]) for it in asked if it)])
    load_plugins(list(files))
    names = [
        policy if it is None else _registered(it["file"], it["name"]) + (it["checkpoint"] or "")
        for policy, it in zip(policies, asked, strict=True)
    ]
    return list(dict.fromkeys(names))


_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[^:]+)(?P<checkpoint>:.*)?")


def _registered(file: str, name: str) -> str:
    """Return the name with which a file registers a policy, given that name or the class's."""
    from learning.policy import POLICIES

    found = {known: it.thing for known, it in POLICIES.registered.items() if it.source == str(Path(file))}
    for known, thing in found.items():
        if name in (known, getattr(thing, "__name__", None)):
            return known
    known = ", ".join(found) or "none"
    raise InputError(f"{file}:{name}: the file registers no such policy; those that it registers: {known}")


def _play(it: "Begun", frozen: "Suite", cells: "Sequence[Cell]", jobs: int, quiet: bool) -> "Submission":
    lacking = it.lacking(cells)
    try:
        with counting(f"{it.label}, runs", len(lacking)) as step:
            played = it.play(frozen, lacking, jobs=jobs, report=step)
    except KeyboardInterrupt:
        note("interrupted; the same command plays what is missing")
        raise
    if not quiet:
        note(f"{it.path}: the submission of {it.label}, {counted(len(played.results), 'run')}")
    return played


def _print(texts: Sequence[str], parts: "Sequence[tuple[str, Table]]") -> None:
    from scenarios.judging.render import markdown_table

    console = stdout()
    if not sys.stdout.isatty():
        tables = (text for title, table in parts for text in (f"**{title}**", markdown_table(table)))
        result("\n\n".join([*texts, *tables]))
        return
    for text in texts:
        console.print(text, markup=False, highlight=False)
    for title, table in parts:
        draw(console, title, table)
