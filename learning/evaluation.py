"""Plays policies in the same worlds, so that their results can be compared in pairs.

The random numbers are common: under one seed every entrant meets the same clients, data, bids and initial models,
because every draw of the market is keyed by its purpose, and none depends on what a policy did.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.log_records import RoundReport
from des.market import Market
from des.money import MICRO
from des.service import ServiceSpec
from fl.arrays import FloatArray, IntArray
from flmarket.core.errors import InputError
from learning.play_round import play
from learning.policy import Policy
from learning.seats import MarketFactory, seat
from learning.statistics import RoundsToTarget, area_under_curve

Entrant = Callable[[Market], Mapping[str, Policy]]
"""Seats its policies in a market that has not begun, and returns the policy of every service."""


def everywhere(name: str, options: Mapping[str, Any] | None = None) -> Entrant:
    """Return the entrant whose services all play one policy, with the same options."""

    def take_seats(market: Market) -> dict[str, Policy]:
        services = [spec.name for spec in market.services]
        return seat(market, dict.fromkeys(services, name), dict.fromkeys(services, options or {}))

    return take_seats


def lineup(names: Mapping[str, str], options: Mapping[str, Mapping[str, Any]] | None = None) -> Entrant:
    """Return the entrant whose services play the named policies; both arguments are by service."""
    return lambda market: seat(market, names, options)


@dataclass(frozen=True, slots=True)
class EvaluationResults:
    """The outcome of an evaluation. Arrays have the axes [entrant, seed, round, service], in the order of the names.

    A service that left keeps its accuracies and its reward to the last round, and spends nothing.
    """

    entrants: tuple[str, ...]  # labels of that axis, as the next two; rounds count from 1 to N
    seeds: tuple[int, ...]
    services: tuple[str, ...]
    targets: FloatArray  # [service] target accuracies
    arrivals: IntArray  # [service] the first round in which each takes part
    # accuracy after the round, in [0, 1]; targets, exits and rewards go by it. It is on validation images where the
    # market holds some out.
    accuracy: FloatArray
    # the accuracy on test images, which ``auc`` is of, as in reports; ``accuracy`` again where no validation images are
    # held out
    reported: FloatArray
    reward: FloatArray  # Omega^accuracy, absorbing
    spent: FloatArray  # money paid to served clients
    wanted: IntArray  # offers made
    served: IntArray  # clients that served

    @classmethod
    def of(
        cls,
        played: Sequence[tuple[str, int]],  # of each run, the entrant and the seed, as ``games`` has them
        services: Sequence[ServiceSpec],  # of all markets
        # of each run, [6, round, service] accuracy, test accuracy, reward, spent, wanted and served
        runs: Sequence[FloatArray],
    ) -> "EvaluationResults":
        entrants = tuple(dict.fromkeys(name for name, _ in played))
        seeds = tuple(seed for _, seed in played[: len(played) // len(entrants)])
        kept = np.array(runs).reshape(len(entrants), len(seeds), *runs[0].shape)
        accuracy, reported, reward, spent, wanted, served = np.moveaxis(kept, 2, 0)
        return cls(
            entrants=entrants,
            seeds=seeds,
            services=tuple(spec.name for spec in services),
            targets=np.array([spec.target_accuracy for spec in services]),
            arrivals=np.array([spec.arrival for spec in services]),
            accuracy=accuracy,
            reported=reported,
            reward=reward,
            spent=spent,
            wanted=wanted.astype(np.int64),
            served=served.astype(np.int64),
        )

    def auc(self) -> FloatArray:
        """Return the mean test accuracy over all rounds from a service's arrival on, [entrant, seed, service]."""
        return area_under_curve(self.reported, self.arrivals)

    def rounds_to_target(self) -> RoundsToTarget:
        """Return when each service met its target, and whether it did; both [entrant, seed, service]."""
        return RoundsToTarget.of_curves(np.moveaxis(self.accuracy, 2, -1), self.targets).since(self.arrivals)


def evaluate(
    # makes a market from a seed, which is closed after its run. All its markets have the same services and rounds.
    factory: MarketFactory,
    entrants: Mapping[str, Entrant],  # by name
    seeds: Iterable[int],  # the markets' seeds
    progress: Callable[[str, int], None] | None = None,  # called with entrant and seed after each run
) -> EvaluationResults:
    """Play every entrant under every seed.

    Raises:
        InputError: services arrive in other rounds under another seed, as those of streams do.
    """
    runs, arrivals = [], set()
    for name, seed in (due := games(entrants, seeds)):
        market = factory(seed)
        try:
            arrivals.add(tuple(spec.arrival for spec in market.services))
            if len(arrivals) > 1:
                raise InputError("an evaluation needs services that arrive in the same rounds under all seeds")
            runs.append(_run(market, name, entrants[name]))
        finally:
            market.close()
        if progress is not None:
            progress(name, seed)
    return EvaluationResults.of(due, market.services, runs)


def games(entrants: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int]]:
    """Return what is played in an evaluation: each entrant under each seed."""
    seeds = tuple(seeds)
    pairs = [(entrant, seed) for entrant in entrants for seed in seeds]
    if not pairs:
        raise ValueError("an evaluation needs at least one entrant and one seed")
    return pairs


def seat_entrant(market: Market, name: str, entrant: Entrant) -> Mapping[str, Policy]:
    """Seat an entrant of this name in a market that has not begun; return its policies by service."""
    policies = entrant(market)
    if missing := [spec.name for spec in market.services if spec.name not in policies]:
        raise ValueError(f"entrant {name!r} has no policy for {', '.join(missing)}")
    return policies


def _run(market: Market, name: str, entrant: Entrant) -> FloatArray:
    """Return [6, N, M]: a run's accuracy, test accuracy, reward, spent, wanted and served."""
    policies = seat_entrant(market, name, entrant)
    reports: list[RoundReport] = []
    play(market, policies, [reports.append])
    rows = np.array(
        [
            [(s.accuracy, s.test_accuracy, s.reward, s.spent / MICRO, s.wanted, s.served) for s in report.services]
            for report in reports
        ]
    )
    # All have left before round N: accuracies and reward are held, and nothing else happens.
    held = np.repeat(rows[-1:] * np.array([1, 1, 1, 0, 0, 0]), market.rounds - len(rows), axis=0)
    return np.moveaxis(np.concatenate([rows, held]), -1, 0)
