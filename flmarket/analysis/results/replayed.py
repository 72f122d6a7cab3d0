"""What takes a replay of a run: models that other coalitions of clients would have made, and costs of work not done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from math import comb
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from des.log_records import Outcome
from des.money import MICRO
from fl.arithmetic.streams import stream
from fl.arrays import FloatArray
from fl.training.jobs import Federation, TrainingJob
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.verification.evidence import Logs
from flmarket.core.errors import InputError, RunError
from flmarket.core.files import expanded
from flmarket.core.names import unknown
from flmarket.core.tracking import tracked
from learning.statistics.intervals import FEWEST
from learning.statistics.measure import MARKET, Measure, MeasureError
from scenarios.build import Shelf, build_federation
from scenarios.logs.directory import RunDirectory

EXACT = 10  # clients of a service in a round up to which the accuracy of every coalition is worked out

Utility = Callable[[Sequence[int]], float]  # returns what a coalition is worth, given its members in their order


def contributions(
    run: "str | PathLike[str]",
    *,
    service: str | None = None,
    rounds: int | None = None,
    permutations: int = 200,
    tolerance: float = 0.001,
) -> pd.DataFrame:
    """Return what each client that served added to its service's accuracy in each round, and what it was paid.

    The run is replayed. A coalition of a round's clients is worth the accuracy, on the images that the market acts on,
    of the model that is made of their updates alone; nobody is worth the model before the round. ``leave_one_out`` is
    what all lose without the client. ``shapley`` is its Shapley value: up to 10 clients over all coalitions; above,
    GTG-Shapley (Liu et al., ACM TIST 13(4), 2022), with its standard ``error`` and the number of ``permutations``.

    Args:
        run: the directory of a complete run.
        service: one service; all of them if not given.
        rounds: the first so many rounds; all of them if not given.
        permutations: how many are drawn in each round, at least; 0 leaves Shapley values out.
        tolerance: differences of accuracy that end a permutation, or leave a round out, above 10 clients.

    Raises:
        InputError: the run is not complete, replaying it gives another accuracy than the log has, or a number above
            is too small.
    """
    if (rounds is not None and rounds < 1) or permutations < 0 or tolerance < 0:
        raise InputError("rounds must be at least 1, and permutations and tolerance at least 0")
    logs = Logs.read_whole(RunDirectory(expanded(run)))
    if service is not None and service not in logs.places:
        raise InputError(unknown("service", service, logs.places))
    columns = ("service", "round", "client", "paid", "leave_one_out", "shapley", "error", "permutations")
    found: list[tuple[Any, ...]] = []
    for name in logs.places if service is None else [service]:
        for number, served, utility in _replayed(logs, name, rounds):
            count = len(served)
            without = [utility([*range(each), *range(each + 1, count)]) for each in range(count)]
            last_ones, error, drawn = utility(range(count)) - np.array(without), np.zeros(count), 0
            if not permutations:
                values = np.full(count, np.nan)
            elif count <= EXACT:
                values = shapley(utility, count)
            else:
                drawn = max(2, -(-permutations // count)) * count
                rng = stream(logs.seed, "shapley", number, name)
                values, error = gtg_shapley(utility, count, rng, drawn // count, tolerance)
            rows = zip(served["client"], served["paid"] / MICRO, last_ones, values, error, strict=True)
            found += [(name, number, *row, drawn) for row in rows]
    return pd.DataFrame(found, columns=columns)


def shapley(utility: Utility, count: int) -> FloatArray:
    """Return the Shapley value of each of so many players, over all coalitions."""
    players = 1 << np.arange(count)
    coalitions = np.arange(1 << count)
    members = (coalitions[:, None] & players) > 0
    worth = np.array([utility(np.flatnonzero(row).tolist()) for row in members])
    weight = np.array([1 / (count * comb(count - 1, size)) for size in range(count)])
    values = np.zeros(count)
    for place, player in enumerate(players):
        without = coalitions[~members[:, place]]
        values[place] = (weight[members[without].sum(axis=1)] * (worth[without | player] - worth[without])).sum()
    return values


def gtg_shapley(
    utility: Utility, count: int, rng: np.random.Generator, sweeps: int, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return estimates of Shapley values and their standard errors.

    Each sweep has a permutation for each player, in which it comes first and the others follow in random order, so that
    sweeps are independent and each is without bias but for the truncation.
    """
    nobody, whole = utility([]), utility(range(count))
    marginal = np.zeros((sweeps, count))
    if abs(whole - nobody) <= tolerance:  # truncation between rounds
        return marginal[0], marginal[0]
    for sweep in marginal:
        for first in range(count):
            others = [*range(first), *range(first + 1, count)]
            order, before = [first, *rng.permutation(others).tolist()], nobody
            for place, player in enumerate(order, 1):
                if abs(whole - before) <= tolerance:  # truncation within a round
                    break
                after = utility(sorted(order[:place]))
                sweep[player] += (after - before) / count
                before = after
    return marginal.mean(axis=0), marginal.std(axis=0, ddof=1) / np.sqrt(sweeps)


def _replayed(logs: Logs, service: str, rounds: int | None) -> Iterator[tuple[int, pd.DataFrame, Utility]]:
    """Yield each round in which clients served a service, their offers, and what coalitions of them are worth."""
    if logs.behaviour is None:
        raise InputError("the clients' behaviour or cost is not known here, or has changed, so nothing can be replayed")
    if logs.scenario.triggers():
        raise InputError("work outlasts rounds in this run (timeline.mode), so no round of it can be replayed alone")
    own = [it for it in logs.scenario.services if it.name == service]
    scenario = logs.scenario.model_copy(update={"services": own})
    with closing(build_federation(scenario, logs.seed, Shelf())) as federation:
        for number in tracked(logs.numbers[:rounds], f"rounds of {service} replayed"):
            offers = logs.offers_of(number, service)
            served = offers[offers["outcome"] == Outcome.SERVED].sort_values("client")
            if served.empty:
                continue
            jobs = logs.jobs(number, served)
            utility = _utility(federation, number, jobs)
            here, logged = utility(range(len(jobs))), float(logs.rounds_of(number)["accuracy"][service])
            if f"{here:.6f}" != f"{logged:.6f}":
                raise InputError(
                    f"round {number} of {service!r}: the accuracy is {here:.6f} when it is replayed, and {logged:.6f} "
                    "in the log; replay the run on a machine of the same arithmetic (docs/reproducibility.md)"
                )
            yield number, served, utility
            federation.train_round(number, jobs)


def _utility(federation: Federation, number: int, jobs: Sequence[TrainingJob]) -> Utility:
    nobody, trial = federation.accuracy(jobs[0].service), federation.trial(number, jobs)

    @cache
    def worth(members: tuple[int, ...]) -> float:
        return trial([jobs[each] for each in members]) if members else nobody

    return lambda members: worth(tuple(members))


def _pay_correlation(run: RunResult, value: str, permutations: int) -> dict[str, float]:
    """Return the correlation over clients of what they were paid in a run with what they contributed."""
    found = contributions(run.directory.path, permutations=permutations)
    sums = found.groupby(["service", "client"])[["paid", value]].sum()
    varied = (it for it in sums.groupby("service") if len(it[1]) >= FEWEST and (it[1].max() > it[1].min()).all())
    correlations = {str(service): float(of.corr().to_numpy()[0, 1]) for service, of in varied}
    return correlations | ({MARKET: float(np.mean([*correlations.values()]))} if correlations else {})


def _envy(run: RunResult) -> dict[str, float]:
    """Return the mean envy of each service's clients, and the market's."""
    logs = Logs.read(run.directory)
    if not logs.has_costs:
        raise InputError("what work costs the clients is not known here, or has changed; load the plug-in's file")
    envy, trades = np.zeros(len(logs.places)), np.zeros(len(logs.places))
    for number, world in logs.worlds():
        there = np.ones(world.bid.shape, dtype=np.bool_) if world.serves is None else world.serves.copy()
        there[:, list(logs.conditions(number).offline)] = False
        for name, m in logs.places.items():
            offers = logs.offers_of(number, name)
            served = offers[offers["outcome"] == Outcome.SERVED]
            clients, paid, cost = served["client"].to_numpy(), served["paid"].to_numpy(), world.held.cost[m]
            if len(clients):
                own = np.zeros(len(cost))
                own[clients] = paid - cost[clients]
                envy[m] += np.maximum(paid.max() - cost - own, 0)[there[m]].mean() / MICRO
                trades[m] += 1
    of_services = envy / np.maximum(trades, 1)
    return dict(zip(logs.places, of_services.tolist(), strict=True)) | {MARKET: float(of_services.mean())}


def _replaying(
    name: str, meaning: str, better: int, values: Callable[[RunResult], Mapping[str, float]], **more: Any
) -> Measure:
    """Return a measure that is left out where the run cannot be replayed here."""

    def of_run(run: RunResult) -> Mapping[str, float]:
        try:
            return values(run)
        except (InputError, RunError) as error:
            raise MeasureError(f"measure {name!r} of {run.directory.path}: {error}") from error

    return Measure(name, meaning, better, of_run, **more)


SHAPLEY_CORRELATION, LEAVE_ONE_OUT_CORRELATION = (
    _replaying(
        f"{name} correlation",
        "correlation over the clients that served of what they were paid in the whole run with the sum over the rounds "
        f"of {what}; of the market: mean of the services'",
        1, partial(_pay_correlation, value=column, permutations=drawn), digits=3, limits=(-1.0, 1.0),
    )
    for name, column, drawn, what in (
        ("Shapley", "shapley", 200, "their Shapley values, by which they raised the service's accuracy"),
        ("leave-one-out", "leave_one_out", 0, "the accuracy that their service would have lost without them"),
    )
)  # fmt: skip

ENVY = _replaying(
    "envy",
    "money that a client would have more in the place of the best-paid client of a service, at its own cost: mean over "
    "the clients that were there and the rounds in which some served; of the market: mean of the services'",
    -1, _envy, digits=4,
)  # fmt: skip

REPLAYED = (SHAPLEY_CORRELATION, LEAVE_ONE_OUT_CORRELATION, ENVY)
"""Shown by reports that are asked for them, like those of ``measures.LITERATURE``; each takes a replay of each run."""
