"""``flmarket papers``: the papers that can be played; ``papers play KEY`` plays, verifies and reports one."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

import flmarket
from flmarket.cli.arguments import Assignments, Quiet, Seed, load_plugins, options_of, seeds_of, seeds_option
from flmarket.cli.console import note, program
from flmarket.core.errors import InputError
from flmarket.core.names import suggest
from flmarket.core.rich_console import show
from scenarios.running.run_options import RunOptions

_ROW = re.compile(r"^\| \[(.+?)\]\(([\w-]+)/README\.md\) \| (.+?) \| (.+?) \|$", re.MULTILINE)

_REPORT = re.compile(r"^\$ flmarket report \S+ (.*--(?:by|measure) .*)$", re.MULTILINE)

papers = typer.Typer(help="List the papers that can be played; `papers play KEY` plays, verifies and reports one.")


def _folder() -> Path:
    folder = Path(flmarket.__file__).parents[1] / "papers"
    if not (folder / "README.md").is_file():
        raise InputError("the folder papers is not installed with flmarket; it is in a copy of the repository")
    return folder


def _rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield key, name, what it is and what came out of each paper, from the table of papers/README.md."""
    for name, key, about, found in _ROW.findall((_folder() / "README.md").read_text(encoding="utf-8")):
        yield key, name, about.replace("`", ""), found.replace("`", "")


def _reports(paper: Path, runs: Sequence[Path]) -> Iterator[str]:
    """Yield the commands of a paper's page that report by a key or by measures, for the folders of some runs."""
    page = (paper / "README.md").read_text(encoding="utf-8")
    for words in dict.fromkeys(_REPORT.findall(page)):
        options = words.replace(f"papers/{paper.name}/plugins.py", quote(str(paper / "plugins.py")))
        yield f"{program()} report {' '.join(quote(str(path)) for path in runs)} {options}"


def _keys(incomplete: str) -> list[str]:
    """Return the papers whose keys begin so, for the shell's completion."""
    return [key for key, *_ in _rows() if key.startswith(incomplete)]


@papers.callback(invoke_without_command=True)
def list_papers(context: typer.Context) -> None:
    """List the papers that can be played, and what came out of each."""
    if context.invoked_subcommand is None:
        show(["key", "paper", "what it is", "what came out"], _rows())


@papers.command("play")
@options_of(RunOptions)
def play(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A paper of the list.", autocompletion=_keys)],
    seeds: Annotated[str | None, seeds_option("One run for each seed", "0")] = None,
    seed: Seed = None,
    assignments: Assignments = None,
    quiet: Quiet = False,
    *,
    options: RunOptions,
) -> None:
    """Play a paper's scenario with its plug-ins, verify the runs, and print the report of the whole market.

    The report has the paper's own measures, too. The paper's page may say more, by other reports; their commands
    follow. Takes most options of `flmarket run`: a paper brings its policies and plug-ins.
    """
    keys = [known for known, *_ in _rows()]
    if key not in keys:
        raise InputError(f"{key!r} is not a paper{suggest(key, keys)}")
    # The list of papers needs none of what playing takes.
    from flmarket.cli import batches, loading
    from flmarket.cli.commands import report, verify

    folder, chosen = _folder() / key, seeds_of(seeds, seed, [0])
    load_plugins([folder / "plugins.py"])
    scenarios = batches.load_to_play([str(folder / "scenario.toml")], assignments or [], [], [], options)
    complete, failed = batches.play(scenarios, [], chosen, options, quiet=quiet, first=None, trackers=[])
    batches.print_results(complete, loading.all_assignments(assignments or [], options.values))
    status = int(failed)
    if places := [run.directory.path for run in complete]:
        status = max(status, verify.verified(places))
        report.report(places, table=["whole market"])
        folders = list(dict.fromkeys(run.directory.folder for run in complete))
        if commands := list(_reports(folder, folders)):
            note("\n  ".join(["The paper's page reports them by other keys and measures:", *commands]))
    note(f"What the paper claims, and what came out here: {folder / 'README.md'}")
    raise typer.Exit(status)
