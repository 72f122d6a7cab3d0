"""Scores of submissions between `random` (0) and the privileged reference (1), with intervals.

In one market and mode a policy's score is (AUC - random) / (reference - random), where numerator and denominator are
means over the seeds. It is not clipped.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fl.arrays import FloatArray
from flmarket.benchmark.suite.submission import Submission
from flmarket.core.errors import InputError
from learning.statistics.intervals import Interval, paired_interval
from scenarios.suite.frozen import FLOOR, MODES, PRIVILEGED, RESIDENT, Suite, SuiteMarket, SuiteRun


@dataclass(frozen=True)
class Result:
    """The results of a method in one market and mode, means over the seats."""

    market: SuiteMarket
    mode: str
    seeds: tuple[int, ...]  # [S] the markets' seeds
    auc: FloatArray  # [T, S] of T submissions, which are trainings of the method with different seeds
    floor: FloatArray  # [S] the AUC of `random`
    reference: FloatArray  # [S] the AUC of the privileged reference
    rival: FloatArray  # [S] the AUC of the best unprivileged reference
    reference_name: str
    rival_name: str

    @property
    def scores(self) -> FloatArray:
        """[T, S] values whose mean is the score, and which vary as much as it does.

        The score is a ratio of two means over the same seeds. What a seed adds to its error is its numerator less the
        score times its denominator, divided by the mean denominator (Cochran, "Sampling Techniques", 1977, chapter 6).
        """
        gained, gap = self.auc - self.floor, self.reference - self.floor
        score = gained.mean() / gap.mean()
        return np.asarray(score + (gained - score * gap) / gap.mean())

    @property
    def differences(self) -> FloatArray:
        """[T, S] how much more AUC than the best unprivileged reference has."""
        return np.asarray(self.auc - self.rival)


@dataclass(frozen=True)
class SuiteStanding:
    """The results of a method in the suite."""

    method: str  # its name
    privileged: bool  # whether it sees what the paper hides
    trainings: int  # T, how many submissions it has
    results: tuple[Result, ...]  # in the suite's order
    wanted: int  # markets and modes in which methods are compared
    missing: int  # those of them that not all its submissions have played with all seeds

    def chosen(self, mode: str | None = None, *, contested: bool = False) -> list[Result]:
        """Return the results of a mode, or of contested markets alone."""
        return [it for it in self.results if mode in (None, it.mode) and (it.market.contested or not contested)]

    def score(self, mode: str | None = None) -> Interval | None:
        """Return the mean score over markets, of one mode or of both, with its 95 % interval; None without results.

        Seeds vary in the interval, markets do not: it says what other market seeds (and trainings, where there are
        several) would give in the same markets.
        """
        return _mean([(it.seeds, it.scores) for it in self.chosen(mode)])

    def difference(self, mode: str, *, contested: bool = False) -> Interval | None:
        """Return how much more AUC than the best unprivileged reference of each market it has; as ``score``."""
        return _mean([(it.seeds, it.differences) for it in self.chosen(mode, contested=contested)])

    def worst(self, mode: str) -> Result | None:
        """Return the result that is furthest behind the best unprivileged reference."""
        return min(self.chosen(mode), key=lambda it: float(it.differences.mean()), default=None)


def standings(
    submissions: Iterable[Submission],
    suite: Suite,
    cells: Sequence[SuiteRun] | None = None,  # the runs that count; if not given, all ``Suite.cells``
) -> list[SuiteStanding]:
    """Return what each method reached: those that have played most first, by their scores. Errors as ``by_method``."""

    def place(standing: SuiteStanding) -> tuple[int, float]:
        score = standing.score()
        return standing.missing, float("inf") if score is None else -score.estimate

    chosen = frozenset(suite.cells() if cells is None else cells)
    methods = by_method(submissions)
    return sorted((_standing(name, methods[name], suite, chosen) for name in methods), key=place)


def by_method(submissions: Iterable[Submission]) -> dict[str, list[Submission]]:
    """Return the submissions of each method; several that are not of different agents are an InputError."""
    methods: dict[str, list[Submission]] = {}
    for submission in submissions:
        methods.setdefault(submission.method, []).append(submission)
    for method, submitted in methods.items():
        agents = {it.agent for it in submitted}
        if len(submitted) > 1 and (None in agents or len(agents) < len(submitted)):
            raise InputError(
                f"method {method!r} has {len(submitted)} submissions that are not of different agents; "
                "give what differs the name of another method, or leave out what is the same"
            )
    return methods


def against_zero(values: FloatArray) -> Interval:
    """Return the mean of [T, S] values with its interval, training and market seeds crossed."""
    return paired_interval(values, np.zeros_like(values))


def _standing(
    method: str, submissions: Sequence[Submission], suite: Suite, chosen: frozenset[SuiteRun]
) -> SuiteStanding:
    places, seeds = {(it.market, it.mode) for it in chosen}, {it.seed for it in chosen}
    wanted = [(it, mode) for mode in MODES for it in suite.markets.values() if (it.name, mode) in places]
    reached = [_result(market, mode, submissions, suite, seeds) for market, mode in wanted]
    results = tuple(it for it in reached if it is not None)
    missing = len(wanted) - sum({*it.seeds} == seeds for it in results)
    privileged = any(it.privileged for it in submissions)
    return SuiteStanding(method, privileged, len(submissions), results, len(wanted), missing)


def _result(
    market: SuiteMarket, mode: str, submissions: Sequence[Submission], suite: Suite, wanted: Collection[int]
) -> Result | None:
    """Return the result over the wanted seeds that all submissions have played in all seats; None if there are none."""

    def cells(seeds: Sequence[int]) -> list[list[SuiteRun]]:  # by seat and seed
        return [[SuiteRun(market.name, mode, seat, seed) for seed in seeds] for seat in market.seats(mode)]

    def references(policy: str, seeds: Sequence[int]) -> FloatArray:
        return np.asarray(np.mean([[suite.references[cell][policy] for cell in row] for row in cells(seeds)], axis=0))

    def best(policies: Sequence[str]) -> str:
        return max(policies, key=lambda policy: float(references(policy, suite.seeds).mean()))

    seeds = tuple(
        seed
        for seed in suite.seeds
        if seed in wanted and all(cell in it.results for it in submissions for (cell,) in cells([seed]))
    )
    if not seeds:
        return None
    reference = best(PRIVILEGED) if mode == RESIDENT else PRIVILEGED[0]
    rival = best(suite.rivals)
    aucs = [[[it.results[cell] for cell in row] for row in cells(seeds)] for it in submissions]
    return Result(
        market=market,
        mode=mode,
        seeds=seeds,
        auc=np.mean(aucs, axis=1),
        floor=references(FLOOR, seeds),
        reference=references(reference, seeds),
        rival=references(rival, seeds),
        reference_name=reference,
        rival_name=rival,
    )


def _mean(by_market: Sequence[tuple[tuple[int, ...], FloatArray]]) -> Interval | None:
    """Return the interval of the mean over markets, over the seeds that all of them were played with."""
    if not by_market:
        return None
    common = [seed for seed in by_market[0][0] if all(seed in seeds for seeds, _ in by_market)]
    if not common:
        return None
    arrays = [values[:, [seeds.index(seed) for seed in common]] for seeds, values in by_market]
    return against_zero(np.mean(arrays, axis=0))
