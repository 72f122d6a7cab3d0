"""Runs compared at a round, by the measures, intervals and paired differences of ``flmarket report``, and their names.

Runs that differ in their seed alone are compared as one group; a run of its own is a group of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import TypeVar

import numpy as np

from des.observation import Status
from fl.arrays import FloatArray
from flmarket.analysis.results import report
from flmarket.analysis.results.measures import AUC, MEASURES
from flmarket.analysis.results.report import Difference, Estimate
from flmarket.analysis.results.run_results import HELD, RunResult, lengthened
from flmarket.analysis.results.setting import RunSetting
from flmarket.core.text import counted
from learning.statistics.intervals import FEWEST, mean_band
from learning.statistics.measure import Measure
from scenarios.file.differences import names_among
from scenarios.file.interventions import service_of
from scenarios.file.schema import Intervention
from scenarios.file.toml import value_text
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import FIGURES
from scenarios.logs.run_state import RunState
from tui.state.watched_run import Session

SHOWN = ("AUC", "rounds to target", "seconds to target", "final accuracy", "spent", "served", "refused")
"""The measures that are compared."""


def _prices(run: RunResult) -> dict[str, float]:
    totals = zip(run.setting.services, run["spent"].sum(axis=0), run["served"].sum(axis=0), strict=True)
    return {service: float(spent / served) for service, spent, served in totals if served}


DECIDES = {
    "test_accuracy": AUC,
    "reward": next(measure for measure in MEASURES if measure.name == "normalised reward"),
    "spent": next(measure for measure in MEASURES if measure.name == "spent"),
    "mean_payment": Measure("mean price", "money paid for each offer that was served", 0, _prices),
}
"""The measure that says who is ahead, by the curve that is shown: of ``history.COMPARED``."""

_MEASURES = list(dict.fromkeys([*(measure for measure in MEASURES if measure.name in SHOWN), *DECIDES.values()]))

POINTS = 400
"""Points of a curve at most, about."""

Mean = TypeVar("Mean", Estimate, Difference)


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """Runs of one market and policy."""

    name: str  # what distinguishes it from the other groups
    runs: tuple[int, ...]  # their places among the runs that are compared


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One service in a group of runs; intervals are known once all runs are over."""

    group: int
    service: str
    policy: str
    over: bool  # whether this is the last round of complete runs: what was not met will not be
    means: Mapping[str, Estimate]  # by the names of measures
    differences: Mapping[str, Difference]  # from the baseline; none of itself, nor where no seed is shared
    common: str = ""  # how many seeds these are over, where the group's and the baseline's are not the same


def groups(sessions: Sequence[Session]) -> list[PolicyRuns]:
    """Return the groups of runs that differ in their seed alone, in the order of their first runs."""
    alike: dict[object, list[int]] = {}
    for place, session in enumerate(sessions):
        known = session.scenario is not None
        alike.setdefault((session.hash8, session.policy, session.market) if known else place, []).append(place)
    parted: list[list[int]] = []
    for places in alike.values():
        # With one seed twice they are no runs over seeds, whatever else they are.
        same = len({sessions[place].seed for place in places}) < len(places)
        parted += [[place] for place in places] if same else [places]
    even = len(parted[0]) > 1 and len(set(map(len, parted))) == 1 if parted else False
    return [PolicyRuns(_name(sessions, places, even=even), tuple(places)) for places in parted]


def _name(sessions: Sequence[Session], places: Sequence[int], *, even: bool) -> str:
    """Return a group's name, and over how many seeds it is unless that is ``even``, the same of all groups."""
    first = sessions[places[0]]
    if first.scenario is None:
        return first.label
    name = market_name(first, sessions)
    if even:
        return name
    return f"{name} · seed {first.seed}" if len(places) == 1 else f"{name} · {len(places)} seeds"


def common_rounds(sessions: Sequence[Session]) -> list[int]:
    """Return the round at which each run is compared with the others: the last that all have reached.

    A run that is complete because all its services have left counts with its last round: nothing changes after it. One
    that was interrupted or stopped, or that failed, does not: its services might have gone further. A run that has no
    round yet holds none of the others back.
    """
    played = [len(session.history) for session in sessions]
    bounds = [n for n, session in zip(played, sessions, strict=True) if n and not _finished(session, n)]
    common = min(bounds) if bounds else max(played, default=0)
    return [min(n, common) for n in played]


def _finished(session: Session, last: int) -> bool:
    complete = session.state is RunState.COMPLETE
    return complete and all(row.status.gone for row in session.history[last].services)


def compare(
    sessions: Sequence[Session],  # the runs
    rounds: Sequence[int],  # the round at which each run is compared; 0 for a run that has none yet
    compared: Sequence[PolicyRuns],  # the groups of the runs
    baseline: int,  # the place of the group that the others are compared with
) -> list[ServiceRow]:
    """Return one row for each service and group, services together."""
    lengths = _lengths(sessions, rounds)
    results = [
        result_at(session, n, length) if n else None
        for session, n, length in zip(sessions, rounds, lengths, strict=True)
    ]
    begun = {
        place: report.SeedGroup.of(own, _MEASURES)
        for place, group in enumerate(compared)
        if (own := [result for run in group.runs if (result := results[run]) is not None])
    }
    rests = [all(sessions[run].over for run in group.runs) for group in compared]
    rows: dict[str, list[ServiceRow]] = {}
    for place, group in begun.items():
        means: dict[str, dict[str, Estimate]] = {}
        differences: dict[str, dict[str, Difference]] = {}
        common = ""
        for mean in report.estimates(group, _MEASURES):
            means.setdefault(mean.service, {})[mean.measure.name] = _settled(mean, rests[place])
        if place != baseline and baseline in begun:
            mine, theirs = ({run.seed for run in it.runs} for it in (group, begun[baseline]))
            common = "" if mine == theirs else f" ({counted(len(mine & theirs), 'common seed')})"
            for pair in report.differences(group, begun[baseline], _MEASURES):
                settled = _settled(pair, rests[place] and rests[baseline])
                differences.setdefault(pair.service, {})[pair.measure.name] = settled
        runs = [(sessions[run], rounds[run]) for run in compared[place].runs]
        over = all(session.state is RunState.COMPLETE and n == len(session.history) for session, n in runs)
        for service in group.setting.services:
            own_means = means[service]
            pairs, played = differences.get(service, {}), own_means["spent"].played
            rows.setdefault(service, []).append(ServiceRow(place, service, played, over, own_means, pairs, common))
    return [row for own in rows.values() for row in own]


def _lengths(sessions: Sequence[Session], rounds: Sequence[int]) -> list[int]:
    """Return the number of rounds that each run's means are over.

    A run that all services have left is as long as the longest run that is shown; where that is so of all, as long as
    it may be, as in reports.
    """
    ended = [bool(n) and _finished(session, n) for session, n in zip(sessions, rounds, strict=True)]
    most = max(rounds, default=0)
    if all(done for n, done in zip(rounds, ended, strict=True) if n):
        return [session.scenario.rounds if session.scenario else most for session in sessions]
    return [most if done else n for n, done in zip(rounds, ended, strict=True)]


def _settled(mean: Mean, rests: bool) -> Mean:
    """Return a mean without its interval while a run is in progress."""
    return mean if rests else replace(mean, interval=replace(mean.interval, low=nan, high=nan))


def result_at(session: Session, last: int, length: int = 0) -> RunResult:
    """Return a run as reports read it, as if it had ended after a round: over ``length`` rounds, if these are more."""
    scenario, history = session.scenario, session.history
    assert scenario is not None  # noqa: S101 - known before the first round
    directory = session.directory or Path(session.hash8)
    setting = RunSetting(scenario, scenario.name, directory.parent.parent, session.sweep, 0, session.sweep)
    return RunResult(
        setting=setting,
        policy=session.policy,
        policies=tuple(row.policy for row in history[last].services),
        seed=session.seed,
        directory=RunDirectory(directory),
        curves={figure: lengthened(figure, history.column(figure, last), max(last, length)) for figure in FIGURES},
        played=last,
        exits=[history.exit_of(m, last) for m in range(len(scenario.services))],
        last=[history.exit_of(m, last, Status.GAVE_UP) or max(last, length) for m in range(len(scenario.services))],
    )


def mean_series(
    sessions: Sequence[Session],  # the runs
    rounds: Sequence[int],  # the last round of each that counts; 0 for a run that has none
    service: str,  # the service's name
    metric: str,  # one of ``history.COMPARED``, or ``accuracy``
    first: int = 1,  # the first round of the curve
) -> tuple[list[float], list[float]]:
    """Return the mean curve of a service in some runs: rounds, thinned to about ``POINTS``, and the means.

    A service that has left keeps its accuracy and reward until the last round of the longest run, and spends nothing.
    Rounds in which no run has a value are left out.
    """
    numbers, values = _curves(sessions, rounds, service, metric, POINTS, first)
    means = _means(values)
    some = ~np.isnan(means)
    return numbers[some].tolist(), means[some].tolist()


def difference_series(
    sessions: Sequence[Session],  # the runs
    rounds: Sequence[int],  # the last round of each that counts
    runs: Sequence[int],  # the places of a group's runs, which have begun
    others: Sequence[int],  # those of the baseline
    service: str,
    metric: str,
    first: int = 1,
) -> tuple[list[float], list[float]]:
    """Return by how much a group's mean curve is above the baseline's, over the seeds that both have: rounds, values.

    There are none beyond the last round of any of these runs, or where no seed is shared.
    """
    seeds = {sessions[run].seed for run in runs} & {sessions[run].seed for run in others}
    own, base = ([run for run in part if sessions[run].seed in seeds] for part in (runs, others))
    both = [*own, *base]
    last = min((rounds[run] for run in both), default=0)
    numbers, values = _curves([sessions[run] for run in both], [last] * len(both), service, metric, POINTS, first)
    differences = _means(values[: len(own)]) - _means(values[len(own) :])
    some = ~np.isnan(differences)
    return numbers[some].tolist(), differences[some].tolist()


def _means(values: FloatArray) -> FloatArray:
    """Return [P] the means of the runs that have a value; NaN where none has one."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    means: FloatArray = np.where(count, np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1), nan)
    return means


def band_series(
    sessions: Sequence[Session], rounds: Sequence[int], service: str, metric: str, first: int = 1, points: int = 60
) -> tuple[list[float], list[float], list[float]]:
    """Return the 95 % intervals of a mean curve at some rounds: the rounds, the lower ends, and the upper ends.

    There are none for fewer than ``FEWEST`` seeds, or while a run is in progress. Rounds in which a run has no value
    are left out. The arguments are those of ``mean_series``.
    """
    if len(sessions) < FEWEST or not all(rounds) or not all(session.over for session in sessions):
        return [], [], []
    numbers, values = _curves(sessions, rounds, service, metric, points, first)
    whole = ~np.isnan(values).any(axis=0)
    if not whole.any():
        return [], [], []
    _, low, high = mean_band(values[:, whole], (0.0, 1.0 if metric == "test_accuracy" else inf))
    return numbers[whole].tolist(), low.tolist(), high.tolist()


def _curves(
    sessions: Sequence[Session], rounds: Sequence[int], service: str, metric: str, points: int, first: int
) -> tuple[FloatArray, FloatArray]:
    """Return [P] about so many rounds, and [runs, P] the values of all runs that have begun; NaN where one has none."""
    runs = [(session.history, n) for session, n in zip(sessions, rounds, strict=True) if n]
    last = max((n for _, n in runs), default=0)
    first = max(1, first)
    stride = max(1, (last + 1 - first) // points)
    numbers = np.unique([*range(first, last + 1, stride), *([last] if last >= first else [])]).astype(np.int64)
    values = np.empty((len(runs), len(numbers)))
    for run, (history, n) in enumerate(runs):
        place = [row.service for row in history[n].services].index(service)
        values[run] = history.column(metric, n)[np.minimum(numbers, n) - 1, place]
        if metric not in HELD:
            values[run, numbers > n] = 0.0 if metric == "spent" else nan
    return numbers.astype(np.float64), values


def caveats(sessions: Sequence[Session], *, paired: bool = False) -> list[str]:
    """Return why a comparison is not entirely fair; nothing if it is. ``paired``: each policy has the same seeds."""
    known = [session for session in sessions if session.scenario is not None]
    notes = []
    if len({session.hash8 for session in known}) > 1:
        first = first_intervention(known)
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
    for session in sessions:
        if session.origin in sessions:  # of a fork that has not begun no more is known
            return sessions.index(session.origin)
    known = [place for place, session in enumerate(sessions) if session.scenario is not None]
    if first_intervention([sessions[place] for place in known]) is None:
        return 0
    return min(known, key=lambda place: (sessions[place].hurry > 0, len(_interventions(sessions[place])), place))


def _market_words(session: Session, sessions: Sequence[Session]) -> list[str]:
    """Return what tells a run's market from those of the others: values, interventions, and its hash if need be."""
    markets = {other.hash8: other.values for other in sessions if other.values is not None}
    if session.values is None or len(markets) == 1:
        return []
    name, among = session.values.name, names_among(markets)[session.hash8]
    several = len({market.name for market in markets.values()}) > 1
    called = [f"{name}-{session.hash8}"] if not among.alone else [name] if several else []
    changes = [
        change.removeprefix("services.") for change in among.changes
    ]  # where there is little room, the value is to be seen
    return [*called, *([among.market] if among.market else []), *changes]


def _interventions(session: Session) -> tuple[Intervention, ...]:
    return session.scenario.interventions if session.scenario else ()


def _common_interventions(sessions: Sequence[Session]) -> list[Intervention]:
    first, *others = map(_interventions, sessions)
    return [change for change in first if all(change in interventions for interventions in others)]


def intervened(sessions: Sequence[Session]) -> str:
    """Return the service of the first intervention in which markets differ; empty if it changes no service."""
    first = min(_own_interventions(sessions), key=lambda change: change.round, default=None)
    return (first and service_of(first.key)) or ""


def first_intervention(sessions: Sequence[Session]) -> int | None:
    """Return the first round in which markets differ, if they differ in nothing but interventions; else None."""
    known = [session for session in sessions if session.scenario is not None]
    return min((change.round for change in _own_interventions(known)), default=None)


def parting(sessions: Sequence[Session]) -> tuple[int, str] | None:
    """Return the first round in which markets differ, and what changes then; None as in ``first_intervention``."""
    known = [session for session in sessions if session.scenario is not None]
    if (first := first_intervention(sessions)) is None:
        return None
    changes = [change for change in _own_interventions(known) if change.round == first]
    values = {f"{change.key.removeprefix('services.')} = {value_text(change.value)}" for change in changes}
    keys = dict.fromkeys(change.key.removeprefix("services.") for change in changes)
    return first, values.pop() if len(values) == 1 else ", ".join(keys)


def _own_interventions(sessions: Sequence[Session]) -> list[Intervention]:
    """Return the interventions that not all have; none if markets differ in anything else."""
    if len({session.market for session in sessions}) != 1:
        return []
    common = _common_interventions(sessions)
    return [change for session in sessions for change in _interventions(session) if change not in common]
