"""Runs that differ in their seed alone, compared as one: means with intervals. Plain data, no Textual.

Means, intervals and paired differences are those of ``flmarket report`` (``learning.statistics.intervals``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan, nan

import numpy as np

from learning.statistics.intervals import FEWEST, Interval, mean_band, paired_interval
from learning.statistics.time_to_target import RoundsToTarget
from tui.state.comparison import Row, market_name
from tui.state.watched_run import Session

_HELD = frozenset({"accuracy", "test_accuracy", "reward"})
"""Metrics that a service keeps after it has left; it spends nothing then."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one market and policy."""

    name: str  # what distinguishes it from the other groups
    runs: tuple[int, ...]  # their places among the runs that are compared


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds; without an interval for fewer than ``FEWEST`` seeds, and while a run is in progress."""

    value: float
    interval: Interval | None = None

    def text(self, digits: int, sign: str = "") -> str:
        """Return ``61.2 [58.0, 63.9]``, or the mean alone; ``sign`` is ``+`` for differences."""
        return f"{self.value:{sign}.{digits}f}" + self.interval_text(digits, sign)

    def interval_text(self, digits: int, sign: str = "") -> str:
        """Return the interval as it follows a mean; empty if there is none."""
        if self.interval is None:
            return ""
        return f" [{self.interval.low:{sign}.{digits}f}, {self.interval.high:{sign}.{digits}f}]"


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One service in a group of runs. Deltas are paired by seed; None for the baseline, and where no seed is shared.

    ``to_target`` holds all runs of the group, [seeds]; ``rounds`` is its restricted mean. Accuracies are on test
    images, in per cent.
    """

    group: int
    service: str
    policy: str
    seeds: int
    accuracy: Mean
    to_target: RoundsToTarget
    rounds: Mean
    spent: Mean
    served: Mean
    refused: Mean
    accuracy_delta: Mean | None = None
    to_target_delta: Mean | None = None
    spent_delta: Mean | None = None


def groups(sessions: Sequence[Session]) -> list[Group]:
    """Return the groups of runs that differ in their seed alone, in the order of their first runs."""
    found: dict[object, list[int]] = {}
    for place, session in enumerate(sessions):
        known = session.scenario is not None
        found.setdefault((session.hash8, session.policy, session.market) if known else place, []).append(place)
    parted: list[list[int]] = []
    for places in found.values():
        # With one seed twice they are no runs over seeds, whatever else they are.
        same = len({sessions[place].seed for place in places}) < len(places)
        parted += [[place] for place in places] if same else [places]
    return [Group(_name(sessions, places), tuple(places)) for places in parted]


def _name(sessions: Sequence[Session], places: Sequence[int]) -> str:
    first = sessions[places[0]]
    if first.scenario is None:
        return first.label
    name = market_name(first, sessions)
    return f"{name} · seed {first.seed}" if len(places) == 1 else f"{name} · {len(places)} seeds"


def over_seeds(
    sessions: Sequence[Session],  # the runs
    rows: Sequence[Row],  # theirs, as ``comparison.compare`` returns them
    found: Sequence[Group],  # the groups of the runs
    baseline: int,  # the place of the group that the others are compared with
) -> list[GroupRow]:
    """Return one row for each service and group, services together."""
    result = []
    for service in dict.fromkeys(row.service for row in rows):
        own = {row.run: row for row in rows if row.service == service}
        members = [{sessions[run].seed: own[run] for run in group.runs if run in own} for group in found]
        for place, group in enumerate(found):
            if members[place]:
                base = {} if place == baseline else members[baseline]
                own_rest, base_rests = (
                    all(sessions[run].over for run in some.runs) for some in (group, found[baseline])
                )
                result.append(_row(place, service, members[place], base, own_rest, own_rest and base_rests))
    return result


def _row(place: int, service: str, own: dict[int, Row], base: dict[int, Row], rests: bool, both_rest: bool) -> GroupRow:
    rows = list(own.values())
    pairs = [(own[seed], base[seed]) for seed in own if seed in base]
    met = bool(pairs) and all(row.to_target.reached.all() for pair in pairs for row in pair)

    def delta(values: Sequence[tuple[float, float]]) -> Mean | None:
        return _mean(tuple(a for a, _ in values), tuple(b for _, b in values), both_rest) if values else None

    return GroupRow(
        group=place,
        service=service,
        policy=rows[0].policy,
        seeds=len(rows),
        accuracy=_mean(tuple(100 * row.accuracy for row in rows), None, rests),
        to_target=RoundsToTarget(
            np.concatenate([row.to_target.rounds for row in rows]),
            np.concatenate([row.to_target.reached for row in rows]),
        ),
        rounds=_mean(tuple(row.to_target.mean() for row in rows), None, rests),
        spent=_mean(tuple(row.spent for row in rows), None, rests),
        served=_mean(tuple(float(row.served) for row in rows), None, False),
        refused=_mean(tuple(float(row.refused) for row in rows), None, False),
        accuracy_delta=delta([(100 * a.accuracy, 100 * b.accuracy) for a, b in pairs]),
        to_target_delta=delta([(a.to_target.mean(), b.to_target.mean()) for a, b in pairs if met]),
        spent_delta=delta([(a.spent, b.spent) for a, b in pairs]),
    )


# Runs that rest give the same values in each redraw.
@lru_cache(maxsize=4096)
def _mean(own: tuple[float, ...], base: tuple[float, ...] | None, interval: bool) -> Mean:
    other = np.zeros(len(own)) if base is None else np.array(base)
    difference = np.array(own) - other
    if not interval or len(own) < FEWEST or not np.isfinite(difference).all():
        return Mean(float(difference.mean()))
    found = paired_interval(np.array(own), other)
    return Mean(found.estimate, found)


def mean_series(
    sessions: Sequence[Session],  # the runs
    rounds: Sequence[int],  # the last round of each that counts; 0 for a run that has none
    service: str,  # the service's name
    metric: str,  # one of ``history.COMPARED``, or ``accuracy``
    points: int = 400,  # how many points the curve has at most, about
) -> tuple[list[float], list[float]]:
    """Return the mean curve of a service in some runs: rounds, thinned to about ``points``, and the means.

    A service that has left keeps its accuracy and reward until the last round of the longest run, and spends nothing.
    Rounds in which no run has a value are left out.
    """
    found = _values(sessions, rounds, service, metric, points)
    kept = [(x, values) for x, values in found if values]
    return [x for x, _ in kept], [sum(values) / len(values) for _, values in kept]


def band_series(
    sessions: Sequence[Session], rounds: Sequence[int], service: str, metric: str, points: int = 60
) -> tuple[list[float], list[float], list[float]]:
    """Return the 95 % intervals of a mean curve at some rounds: the rounds, the lower ends, and the upper ends.

    There are none for fewer than ``FEWEST`` seeds, or while a run is in progress. Rounds without a value are left
    out. The arguments are those of ``mean_series``.
    """
    if len(sessions) < FEWEST or not all(rounds) or not all(session.over for session in sessions):
        return [], [], []
    whole = [
        (x, values) for x, values in _values(sessions, rounds, service, metric, points) if len(values) == len(sessions)
    ]
    if not whole:
        return [], [], []
    low, high = _band(tuple(tuple(values) for _, values in whole))
    return [x for x, _ in whole], list(low), list(high)


# As of ``_mean``: curves of runs that rest are drawn again and again.
@lru_cache(maxsize=64)
def _band(values: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    _, low, high = mean_band(np.array(values).T)
    return tuple(low.tolist()), tuple(high.tolist())


def _values(
    sessions: Sequence[Session], rounds: Sequence[int], service: str, metric: str, points: int
) -> list[tuple[float, list[float]]]:
    """Return about so many rounds, each with the values of the runs that have one there."""
    runs = [(session.history, n) for session, n in zip(sessions, rounds, strict=True) if n]
    if not runs:
        return []
    places = [[row.service for row in history[n].services].index(service) for history, n in runs]
    last = max(n for _, n in runs)
    chosen = sorted({*range(1, last + 1, max(1, last // points)), last})
    found = []
    for number in chosen:
        values = []
        for (history, n), m in zip(runs, places, strict=True):
            if number <= n or metric in _HELD:
                value = history.figure(m, metric, min(number, n))
            else:
                value = 0.0 if metric == "spent" else nan
            if not isnan(value):
                values.append(value)
        found.append((float(number), values))
    return found
