"""Runs compared: the results of each for every service, and differences from a baseline. Plain data, no Textual."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from learning.targets import RoundsToTarget
from tui.watching.session import Session


@dataclass(frozen=True, slots=True)
class Row:
    """One service in one run at a round. Deltas are None for the baseline, and if one of the two runs has no value."""

    run: int
    service: str
    policy: str
    accuracy: float
    to_target: RoundsToTarget
    spent: float
    served: int
    refused: int
    accuracy_delta: float | None = None
    to_target_delta: float | None = None
    spent_delta: float | None = None


def compare(sessions: Sequence[Session], rounds: Sequence[int], baseline: int) -> list[Row]:
    """Return one row for each service and run, services together.

    Args:
        sessions: the runs.
        rounds: the round at which each run is compared; 0 for a run that has none yet.
        baseline: the place of the run that the others are compared with.
    """
    found: dict[str, dict[int, Row]] = {}
    for run, (session, number) in enumerate(zip(sessions, rounds, strict=True)):
        if not number:
            continue
        for m, last in enumerate(session.history[number].services):
            history = session.history
            found.setdefault(last.service, {})[run] = Row(
                run=run,
                service=last.service,
                policy=last.policy,
                accuracy=last.accuracy,
                to_target=history.rounds_to_target(m, number),
                spent=history.total(m, "spent", number),
                served=int(history.total(m, "served", number)),
                refused=int(history.total(m, "refused", number)),
            )
    return [_differing(row, runs.get(baseline)) for runs in found.values() for row in runs.values()]


def _differing(row: Row, base: Row | None) -> Row:
    if base is None or base is row:
        return row
    both = row.to_target.reached.all() and base.to_target.reached.all()
    return replace(
        row,
        accuracy_delta=row.accuracy - base.accuracy,
        to_target_delta=row.to_target.mean() - base.to_target.mean() if both else None,
        spent_delta=row.spent - base.spent,
    )


def caveats(sessions: Sequence[Session]) -> list[str]:
    """Return why a comparison is not entirely fair; nothing if it is."""
    known = [session for session in sessions if session.scenario is not None]
    notes = []
    if len({session.hash8 for session in known}) > 1:
        notes.append("different markets (settings, sweep values or shocks)")
    if len({session.seed for session in known}) > 1:
        notes.append("different seeds: part of the difference is chance")
    if len({kernel for session in known for kernel in session.kernels.values()}) > 1:
        notes.append("trained in different arithmetic: part of the difference comes from that")
    return notes
