"""The commands of ``flmarket``: each is the function, or the Typer app, that a module of ``commands`` is named after.

A command's module is imported when the command is asked for, so that it can import at its top what it needs: the list
of all commands takes none of them. Results go to stdout, progress to stderr.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from flmarket.cli.console import program, result
from flmarket.core.crash import BAD_INPUT, INTERRUPTED
from flmarket.core.errors import InputError
from flmarket.core.installation import require_one_place, version
from flmarket.core.text import counted, printable_lines
from flmarket.core.tracking import shown
from scenarios.builtin import builtin_names

UsageError: Any = typer.BadParameter.__bases__[0]
"""The exceptions that Typer raises for arguments that it cannot parse; newer versions have a copy of Click's."""

_EXAMPLES = """[bold]Examples[/bold]

$ flmarket run quickstart

$ flmarket run paper --policy random --policy hqfa --seeds 5

$ flmarket run paper-cores --seeds 10 --jobs 4

$ flmarket run my-market.toml --set clients.cores=3 --rounds 20

$ flmarket report runs --baseline random --figures figures

$ flmarket export runs --csv all-rounds.csv

$ flmarket papers play stackelberg-data
"""

_FIRST = """\
flmarket simulates a market in which federated-learning services compete for
the same clients, round after round, under monetary budgets: models are really
trained, money is exact, and every bid, offer and payment is logged.

  {0} run quickstart   play a first market: a few seconds, no download
  {0} demo             watch the screens play a market by themselves
  {0} tui              run markets live, step through them, compare runs

All commands:                   {0} --help
The options of one, such as:    {0} run --help"""


COMMANDS = {
    "certify": "Attack a mechanism: does misreporting pay, and do prices respect bids, offers and budgets?",
    "datasets": "List the data sets a service can learn, and the folder of their files.",
    "demo": "Watch the terminal user interface play a market by itself for half a minute; any key takes over.",
    "doctor": "Check what runs here: packages, kernel, data sets, GPU, cores; and what to do about each shortfall.",
    "explain": "Explain a service's round: the clients it wanted and got, its losses, and what it could have had.",
    "export": "Gather the logs of runs into one file, with columns for scenario, policy, seed and what differs.",
    "fork": "Continue a run from a round with something changed, and show what differs and from which round on.",
    "league": "Let policies visit each other: who exploits whom, and how do they rate?",
    "papers": "List the papers that can be played; `papers play KEY` plays, verifies and reports one.",
    "plugins": "List all plug-ins that a scenario or a report can name, of every kind, built in and your own.",
    "policies": "List the policies a service can use.",
    "replay": "Watch a run again, round by round, in the terminal user interface.",
    "report": "Make tables and figures from many runs: means and intervals over seeds, differences from a baseline.",
    "run": "Run scenarios headlessly and write their logs as CSV.",
    "suite": "Play policies in the frozen suite of markets, and compare them: 0 is `random`, 1 a privileged reference.",
    "train": "Train MAHDRL agents: services that learn which clients to hire and what to pay.",
    "tui": "Open the terminal user interface: configure scenarios, watch markets live, replay and compare runs.",
    "validate": "Check scenario files; every problem is shown, as file:line: key: what is wrong.",
    "verify": "Check from the logs that every constraint holds and that the money adds up.",
    "calibrate": "Fit the quality indicator, or the surrogate's learning curves, to real training.",
    "scenarios": "List the built-in scenarios; `scenarios show NAME` prints a scenario's file.",
}
"""The first sentence of each command's help."""


class _Untyped:
    """Its help shows flags without a type, as they take no value; Typer 0.29 writes ``<bool>`` after each."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class _Command(_Untyped, TyperCommand): ...


class _Group(_Untyped, TyperGroup): ...


class _Later(TyperCommand):
    """A command of the list; its context, and with it its parameters, come from its module."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        return _loaded(str(self.name)).make_context(*arguments, **options)


def _loaded(name: str) -> Any:
    declared = getattr(import_module(f"flmarket.cli.commands.{name}"), name)
    holder = typer.Typer(rich_markup_mode="rich")
    if isinstance(declared, typer.Typer):
        for part in declared.registered_commands:
            part.cls = _Command
        holder.add_typer(declared, name=name, cls=_Group)
    else:
        holder.command(cls=_Command, epilog=_EXAMPLES if name == "run" else None)(declared)
    return typer.main.get_group(holder).commands[name]


_root = typer.Typer(
    name="flmarket",
    cls=_Group,
    help="Simulate a market in which federated-learning services compete for clients under monetary budgets.",
    epilog=_EXAMPLES,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        result(f"flmarket {version()}")
        raise typer.Exit


@_root.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command; without one, say what this is."""
    if context.invoked_subcommand is None:
        result(_FIRST.format(program()))


app: Any = typer.main.get_command(_root)
for _name, _help in COMMANDS.items():
    app.add_command(_Later(_name, help=_help))


def run_arguments() -> object:
    """Do what the command's arguments ask for; return the exit status, or None for 0. Errors are left to the caller."""
    arguments = [_at_home(argument) for argument in _given(sys.argv[1:])]
    require_one_place()
    try:
        with shown(live=sys.stderr.isatty()):
            return app(arguments, standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:  # what earlier versions of Typer make of Ctrl-C
        return INTERRUPTED
    except UsageError as error:
        if getattr(getattr(error, "param", None), "name", None) == "runs":
            raise InputError(_no_runs(arguments[0])) from None
        from typer.rich_utils import rich_format_error

        error.message = printable_lines(error.message + _meant(arguments[0]))
        rich_format_error(error)
        return BAD_INPUT


def _given(arguments: Sequence[str]) -> Sequence[str]:
    """Return arguments, none of which may be empty: an empty path, as of an unset variable, is the current folder."""
    for before, argument in pairwise(["", *arguments]):
        option, equals, value = argument.partition("=")
        if not argument or (option.startswith("--") and equals and not value):
            which = option or (before if before.startswith("-") else "an argument")
            raise InputError(f"{which} is empty; give it a value, or leave it out")
    return arguments


def _no_runs(command: str) -> str:
    """Return what a command that was given no runs wants, and the runs that are there."""
    from scenarios.logs.finding import find_runs
    from scenarios.running.run_options import RunOptions

    out = Path(RunOptions.out)
    count = len(find_runs([out]).ended) if out.is_dir() else 0
    there = f"'flmarket {command} {out}' takes the {counted(count, 'run')} in {out}"
    return f"name runs, or a folder with runs in it; {there if count else f'there are none in {out}'}"


def _meant(first: str) -> str:
    """Return what to type in place of what is no command, but looks like it; else nothing."""
    if first == "help":
        return " Did you mean 'flmarket --help'?"
    return f" Did you mean 'flmarket run {first}'?" if first in builtin_names() or first.endswith(".toml") else ""


def _at_home(argument: str) -> str:
    """Put the home folder in place of the tilde in ``--out=~/runs``, where shells leave it, or in a quoted path."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{os.path.expanduser(value)}" if value.startswith("~") else argument  # noqa: PTH111
