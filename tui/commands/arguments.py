"""Arguments and options that several commands take, and the checks they share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario

Sources = Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Scenario files or built-in names.")]
Source = Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or a built-in name.")]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run directories, or folders that contain run directories.")
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as services.mnist.budget=15. Repeatable."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]


def load_all(sources: list[str], assignments: list[str], rounds: int | None = None) -> "list[Scenario]":
    """Load all scenarios, so that the problems of all files are shown at once.

    Raises:
        ScenarioError: at least one has problems.
    """
    from scenarios.loader import Problem, ScenarioError, load

    overrides = [*assignments, *([] if rounds is None else [f"rounds={rounds}"])]
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for source in sources:
        try:
            scenarios.append(load(source, overrides))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return scenarios


def check_policies(names: list[str]) -> None:
    """Raise an InputError for the first name that is not a policy's."""
    from learning.policy import load

    for name in names:
        load(name)
