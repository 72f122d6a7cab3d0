"""All checks of a run's logs."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from audit import clock, learning, market
from audit.files import Run

CHECKS: tuple[Callable[[Run], Iterator[str]], ...] = (
    market.shape, market.equations, market.constraints, market.budgets, market.sums, market.progress,
    clock.jobs, clock.rounds, clock.events, learning.curves,
)  # fmt: skip


def findings(path: Path) -> Mapping[str, list[str]]:
    """Return what each check finds in a run's directory, by the check's name; nothing for those that find nothing.

    A file that makes no sense at all is a finding, too.
    """
    run, found = Run(path), {}
    for check in CHECKS:
        try:
            problems = list(check(run))
        except (ValueError, KeyError, IndexError, AssertionError) as error:
            problems = [f"cannot be read: {error!r}"]
        if problems:
            found[check.__name__] = problems
    return found
