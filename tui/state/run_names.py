"""Names that tell runs apart that are compared, and why a comparison is not entirely fair."""

from collections.abc import Sequence

from scenarios.file.differences import distinguished, flattened
from scenarios.file.interventions import intervention_words, service_of
from scenarios.file.schema import Intervention, Scenario
from scenarios.logs.run_state import RunState
from tui.state.watched_run import Session


def caveats(sessions: Sequence[Session], *, paired: bool = False) -> list[str]:
    """Return why a comparison is not entirely fair; nothing if it is. ``paired``: each policy has the same seeds."""
    known = [session for session in sessions if session.scenario is not None]
    notes = []
    if len({session.hash8 for session in known}) > 1:
        first = _first_intervention(known)
        if first is None:
            notes.append("different markets (settings, sweep values or interventions)")
        else:
            notes.append(f"the same market until the intervention in round {first}")
    if len({session.seed for session in known}) > 1 and not paired:
        notes.append("different seeds: part of the difference is chance")
    if len(versions := {session.version for session in known if session.version}) > 1:
        notes.append(f"played by flmarket {' and '.join(sorted(versions))}: part of the difference may come from that")
    if len({kernel for session in known for kernel in session.kernels.values()}) > 1:
        notes.append("trained in different arithmetic: part of the difference comes from that")
    for session in known:
        if session.over and session.state is not RunState.COMPLETE and len(session.history):
            notes.append(f"{name_of(session, sessions)}: {session.state} after round {len(session.history)}")
    return notes


def name_of(session: Session, sessions: Sequence[Session]) -> str:
    """Return the shortest name that distinguishes a run from the others it is compared with.

    A fork is named after its intervention, where the market is the others' in all else.
    """
    if session.scenario is None:
        return session.label
    several = len({other.seed for other in sessions if other.scenario}) > 1
    return _named(session, sessions, *([f"seed {session.seed}"] if several else []))


def market_name(session: Session, sessions: Sequence[Session]) -> str:
    """Return the shortest name that distinguishes a run from those of other policies and markets, whatever the seed."""
    return _named(session, sessions)


def _named(session: Session, sessions: Sequence[Session], *more: str) -> str:
    """Return a run's policy, unless that is all runs' and its market tells it from them, more words, and its market."""
    market = _market_words(session, sessions)
    needless = market and len({other.policy for other in sessions if other.scenario is not None}) == 1
    return " · ".join([*([] if needless else [session.policy]), *more, *market])


def original(sessions: Sequence[Session]) -> int:
    """Return the place of the run that others are forks of; that of the first run if there is none."""
    known = [place for place, session in enumerate(sessions) if session.scenario is not None]
    if _first_intervention([sessions[place] for place in known]) is None:
        return 0
    return min(known, key=lambda place: (sessions[place].hurry > 0, len(_interventions(sessions[place])), place))


def _market_words(session: Session, sessions: Sequence[Session]) -> list[str]:
    """Return what tells a run's market from those of the others: interventions, a sweep's values, or its hash."""
    known = [other for other in sessions if other.scenario is not None]
    if session.scenario is None or len({other.hash8 for other in known}) == 1:
        return []
    if _first_intervention(known) is None:
        return _value_words(session.scenario, session.hash8, known)
    words = intervention_words(_interventions(session), map(_interventions, known))
    return [it.removeprefix("services.") for it in words]  # where there is little room, the value is to be seen


def _value_words(scenario: Scenario, hash8: str, known: Sequence[Session]) -> list[str]:
    """Return what distinguishes a market that differs from the others in more than interventions."""
    others = {other.hash8: other.scenario for other in known if other.scenario is not None}
    twins = {key: flattened(other.model_dump()) for key, other in others.items() if other.name == scenario.name}
    values = distinguished(twins).get(hash8)
    if values is None and (len(twins) > 1 or len(twins) == len(others)):
        return [f"{scenario.name}-{hash8}"]
    several = len(twins) < len(others)
    return [*([scenario.name] if several else []), *([] if values is None else [values])]


def _interventions(session: Session) -> tuple[Intervention, ...]:
    return session.scenario.interventions if session.scenario else ()


def _common_interventions(sessions: Sequence[Session]) -> list[Intervention]:
    first, *others = map(_interventions, sessions)
    return [change for change in first if all(change in interventions for interventions in others)]


def intervened(sessions: Sequence[Session]) -> str:
    """Return the service of the first intervention in which markets differ; empty if it changes no service."""
    first = min(_own_interventions(sessions), key=lambda change: change.round, default=None)
    return (first and service_of(first.key)) or ""


def _first_intervention(sessions: Sequence[Session]) -> int | None:
    """Return the first round in which markets differ, if they differ in nothing but interventions; else None."""
    return min((change.round for change in _own_interventions(sessions)), default=None)


def _own_interventions(sessions: Sequence[Session]) -> list[Intervention]:
    """Return the interventions that not all have; none if markets differ in anything else."""
    if len({session.market for session in sessions}) != 1:
        return []
    common = _common_interventions(sessions)
    return [change for session in sessions for change in _interventions(session) if change not in common]
