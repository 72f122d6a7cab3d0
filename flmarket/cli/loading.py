"""What arguments name, loaded and checked: scenarios with their ``--set``, and policies; and what a shell completes.

Commands that load scenarios import this, and with it all that reading one takes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from flmarket.core.errors import InputError
from flmarket.core.text import printable
from learning.policy import ALL
from scenarios.file.checks import Catalogue, installed
from scenarios.file.keys import keys
from scenarios.file.overrides import EVERY_SERVICE
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import Problem, ScenarioError, load


def load_all(
    sources: list[str],
    assignments: list[str],
    values: Mapping[str, object] | None = None,  # by key, which options such as --rounds set
    *,
    catalogue: Catalogue | None = None,
) -> list[Scenario]:
    """Load all scenarios, so that the problems of all files are shown at once."""
    overrides = all_assignments(assignments, values or {})
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for source in sources:
        try:
            scenarios.append(load(source, overrides, catalogue=catalogue))
        except ScenarioError as error:
            for problem in error.problems:
                if len(sources) > 1 and problem.file in map(printable, overrides):
                    problem = replace(problem, message=f"{problem.message} (in {source})")
                problems.append(problem)
    if problems:
        raise ScenarioError(problems)
    return scenarios


def all_assignments(assignments: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Return what ``--set`` gives, and after it what other options set, in the same form."""
    return [*assignments, *(f"{key}={it}" for key, it in values.items())]


def check_policies(names: list[str]) -> None:
    """Raise an InputError for the first that ``--policy`` does not take."""
    for name in names:
        if name != ALL:
            PolicyChoice.parse(name)


def plugin_names(kind: str, incomplete: str) -> list[str]:
    """Return the plug-ins of a kind whose names begin so."""
    return [name for name in installed().names[kind] if name.startswith(incomplete)]


def assignment_beginnings(sources: Sequence[str], incomplete: str) -> list[str]:
    """Return the keys that begin so, of services of scenarios by their names; after a key that has choices, these."""
    tables: dict[str, tuple[str | int, ...]] = {"": (), EVERY_SERVICE: ("services", 0)}
    for source in sources:
        with suppress(InputError):  # a scenario that cannot be used
            tables |= {f"services.{service.name}.": ("services", 0) for service in load(source).services}
    words = []
    for table, path in tables.items():
        for key in keys(path):
            choices = installed().names[key.names] if key.names else key.choices
            begun = f"{table}{key.label}="
            words += [begun + word for word in choices] if choices and incomplete.startswith(begun) else [begun]
    return [word for word in words if word.startswith(incomplete)]
