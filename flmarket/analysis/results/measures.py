"""Measures that come with flmarket: those of every report, and those of the literature that are asked for by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from des.money import MICRO
from fl.arrays import FloatArray
from fl.data.registry import info
from fl.training.trainers import parameter_count
from flmarket.core.errors import InputError
from learning.statistics import RoundsToTarget, area_under_curve
from learning.statistics.measure import ALL_MEASURES, ANY, MARKET, Measure

if TYPE_CHECKING:  # the list of a folder's runs needs no more than this module
    from flmarket.analysis.results.run_results import RunResult

Services = Callable[["RunResult"], FloatArray]  # a run's [M] values


def jain(values: npt.ArrayLike) -> float:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all; 1 for zeros.

    Source: Jain, Chiu and Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    x = np.asarray(values, dtype=np.float64)
    squares = float((x**2).sum())
    return 1.0 if squares == 0 else float(x.sum()) ** 2 / (len(x) * squares)


def gini(values: npt.ArrayLike) -> float:
    """Return the Gini coefficient of n amounts: 0 when all are equal, (n - 1)/n when one has all; 0 for zeros.

    It is the mean difference between two of them, over twice their mean. None may be negative. Source: Gini,
    "Variabilità e mutabilità", 1912.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    total, n = float(x.sum()), len(x)
    return 0.0 if total == 0 else float((2 * np.arange(1, n + 1) - n - 1) @ x) / (n * total)


def hhi(values: npt.ArrayLike) -> float:
    """Return the Herfindahl-Hirschman index, the sum of squared shares: 1/n when all are equal, 1 when one has all.

    0 for zeros. Source: Hirschman, "The paternity of an index", American Economic Review 54(5), 1964.
    """
    x = np.asarray(values, dtype=np.float64)
    total = float(x.sum())
    return 0.0 if total == 0 else float(((x / total) ** 2).sum())


def final_accuracy(
    accuracy: npt.ArrayLike,  # [N, M] on test images, by round
) -> FloatArray:
    """Return [M] the accuracy of each service after the last round, %."""
    final: FloatArray = 100 * np.asarray(accuracy)[-1]
    return final


def _final(run: "RunResult") -> FloatArray:
    return final_accuracy(run["test_accuracy"])


def _cost_per_point(spent: npt.ArrayLike, final: npt.ArrayLike) -> FloatArray:
    """Return money for each percentage point of final accuracy; what gets nothing right has no price."""
    return np.asarray(spent / np.maximum(final, 1e-9))


def _total(column: str) -> Services:
    """Return what gives a run's sums of a column of rounds.csv."""
    return lambda run: run[column].sum(axis=0)


def _misreport_profit(run: "RunResult") -> FloatArray:
    return run.by_service(np.where(run.earnings["misreported"], run.earnings["profit"], 0.0))


def _overstated(run: "RunResult") -> FloatArray:
    """Return [M + 1] images that served clients reported and did not have, % of all; of the market behind them."""
    missing, reported = (run.by_service(run.earnings[column]) for column in ("missing", "reported_size"))
    share: FloatArray = 100 * np.append(missing, missing.sum()) / np.maximum(np.append(reported, reported.sum()), 1)
    return share


def _welfare(run: "RunResult") -> FloatArray:
    costs = run.by_service(run.earnings["paid"] - run.earnings["profit"])
    welfare: FloatArray = run["reward"].sum(axis=0) - costs
    return welfare


def _budget_use(run: "RunResult") -> FloatArray:
    """Return [M] the largest share of a round's budget that was spent, %; rounds without a budget do not count."""
    budget = run["budget"]
    shares: FloatArray = 100 * np.where(budget > 0, run["spent"] / np.where(budget > 0, budget, 1.0), 0.0)
    largest: FloatArray = shares.max(axis=0)
    return largest


def _models(run: "RunResult") -> tuple[list[str], list[str]]:
    """Return the model and the data set of each service."""
    datasets = [service.dataset for service in run.setting.scenario.services]
    return [run.setting.scenario.training_for(name).model for name in datasets], datasets


def _model_bytes(model: str, dataset: str) -> int | None:
    """Return the bytes of a model's parameters; None where the model or the data set is not known here."""
    try:
        known = info(dataset)
        return 4 * parameter_count(model, known.labels, known.shape)
    except InputError:
        return None


def _sizes(run: "RunResult") -> list[int | None]:
    """Return the bytes of each service's model: those that its scenario gives, or those of its parameters."""
    given = [service.model_bytes for service in run.setting.scenario.services]
    return [_model_bytes(*its) if own is None else own for own, *its in zip(given, *_models(run), strict=True)]


def _communication(run: "RunResult") -> FloatArray:
    trips = run.offers[["core", "paid"]].notna().sum(axis=1)  # awarded: the model travels; served: the update, too
    places = [run.place(service) for service in run.offers["service"]]
    sizes = np.array(_sizes(run), dtype=np.float64)
    return sizes * np.bincount(places, trips, len(sizes))


def _core_use(run: "RunResult") -> float:
    clock, cores = run.setting.scenario.timeline, run.setting.cores[: run.played]
    if clock.period is None:
        return float(100 * run["served"].sum() / cores.sum())
    starts, ends = (of[: run.played] for of in run.periods)  # a core works for the time of its jobs, not for rounds
    times = run.offers.dropna(subset=["core"])[["start", "end"]].clip(upper=ends[-1])
    return float(100 * (times["end"] - times["start"]).sum() / (cores * (ends - starts)).sum())


def run_measure(
    name: str,
    meaning: str,
    better: int,
    services: Services | None,  # None for a measure of the market alone
    market: Callable[["RunResult"], float],  # returns the value of the whole market
    applies: Callable[["RunResult"], bool] = lambda _: True,  # returns whether a run has the measure at all
    **more: Any,  # fields of ``Measure``
) -> Measure:
    """Return a measure of services and of the market, each by a function of its own."""

    def values(run: "RunResult") -> dict[str, float]:
        if not applies(run):
            return {}
        of_services = [] if services is None else services(run).tolist()
        values = {name: it for name, it, came in zip(run.setting.services, of_services, run.came, strict=False) if came}
        return values | {MARKET: market(run)}

    return Measure(name, meaning, better, values, **more)


def averaged(name: str, meaning: str, better: int, services: Services, **more: Any) -> Measure:
    """Return a measure whose value of the whole market is the mean of the services' that took part."""
    return run_measure(name, meaning, better, services, lambda run: float(services(run)[run.present].mean()), **more)


def _summed(name: str, meaning: str, better: int, services: Services, **more: Any) -> Measure:
    """Return a measure whose value of the whole market is the sum of the services'."""
    return run_measure(name, meaning, better, services, lambda run: float(services(run).sum()), **more)


def of_market(name: str, meaning: str, better: int, market: Callable[["RunResult"], float], **more: Any) -> Measure:
    """Return a measure of the whole market alone."""
    return run_measure(name, meaning, better, None, market, **more)


PERCENT, SHARE = (0.0, 100.0), (0.0, 1.0)  # limits of measures

ROUNDS_TO_TARGET = averaged(
    "rounds to target",
    'first round with the target met; runs that never met it count with their last round. "> 52.3 (3 of 5)" is a '
    'lower bound, because only 3 of 5 met the target (for the market: all services of all runs); "never": none did. '
    'In front of a difference, "<" says that the baseline has such runs, so that the true difference is below it; ">" '
    'that the policy has; "?" that both have',
    -1,
    lambda run: run.to_target.rounds.astype(np.float64),
    digits=1,
)
"""Tables show ``learning.statistics.RoundsToTarget.text``, which marks a lower bound."""


def _seconds_to_target(run: "RunResult") -> RoundsToTarget:
    met, (_, ends), came = run.to_target, run.periods, [stay.came for stay in run.stays]
    return RoundsToTarget(np.maximum(ends[run.arrivals + met.rounds - 2] - came, 0) / MICRO, met.reached)


SECONDS_TO_TARGET = averaged(
    "seconds to target",
    "simulated seconds from a service's arrival to the evaluation that met the target, where time goes on without "
    "rounds; runs that never met it count to the end of their last period, with the marks of rounds to target",
    -1,
    lambda run: _seconds_to_target(run).rounds.astype(np.float64),
    digits=1,
    applies=lambda run: run.setting.scenario.timeline.period is not None,
)

TO_TARGET: Mapping[str, Callable[["RunResult"], RoundsToTarget]] = {
    ROUNDS_TO_TARGET.name: lambda run: run.to_target,
    SECONDS_TO_TARGET.name: _seconds_to_target,
}
"""When a run's services met their targets, by the name of the measure; the others have no lower bounds."""


def _first_work(run: "RunResult") -> FloatArray:
    """Return [M] the instant at which each service first has a client at work, in microseconds; infinity if never."""
    first = run.offers.dropna(subset=["core"]).groupby("service")["start"].min()
    return np.array([first.get(service, np.inf) for service in run.setting.services], dtype=np.float64)


def _waiting(run: "RunResult") -> FloatArray:
    end = run.periods[1][run.played - 1]
    slot = (run.setting.scenario.timeline.slot or 0) * MICRO
    until = [end if stay.last is None else min(end, stay.last * slot) for stay in run.stays]
    waited = np.minimum(_first_work(run), until) - [stay.came for stay in run.stays]
    return np.asarray(np.maximum(waited, 0.0) / MICRO)


def _has_streams(run: "RunResult") -> bool:
    """Return whether services come at instants of their own, in a continuous market."""
    return bool(run.setting.scenario.streams) and run.setting.scenario.timeline.period is not None


AUC = averaged(
    "AUC",
    "mean accuracy over all rounds, %",
    1,
    lambda run: 100 * area_under_curve(run["test_accuracy"], run.arrivals, run.lengths),
    limits=PERCENT,
)

MEASURES = (
    averaged("final accuracy", "accuracy after the last round, %", 1, _final, limits=PERCENT),
    AUC,
    averaged(
        "target met", "share of runs that met the target, %", 1,
        lambda run: np.where(run.to_target.reached, 100.0, 0.0), digits=1, limits=PERCENT,
    ),
    ROUNDS_TO_TARGET,
    SECONDS_TO_TARGET,
    averaged(
        "waiting",
        "simulated seconds from the arrival of a service, where some come in streams, until a client is first at work "
        "for it; where none ever is, until it leaves, or the run ends",
        -1, _waiting, digits=1, applies=_has_streams,
    ),
    averaged(
        "never served",
        "share of runs in which no client was ever at work for the service, where some come in streams, %",
        -1, lambda run: np.where(np.isinf(_first_work(run)), 100.0, 0.0),
        digits=1, limits=PERCENT, applies=_has_streams,
    ),
    averaged(
        "normalised reward", "mean over the rounds of reward / Omega^target, as in the paper", 1,
        lambda run: area_under_curve(run.normalised_reward, run.arrivals, run.lengths), digits=4, limits=SHARE,
    ),
    run_measure(
        "spent", "money paid to clients in the whole run", 0,
        _total("spent"), lambda run: float(run["spent"].sum()),
    ),
    run_measure(
        "cost per point", "money paid for each percentage point of final accuracy", -1,
        lambda run: _cost_per_point(run["spent"].sum(axis=0), _final(run)),
        lambda run: float(_cost_per_point(run["spent"].sum(), _final(run)[run.present].sum())),
    ),
    _summed("served", "offers that were served", 0, _total("served"), digits=1),
    _summed("refused", "offers that were outbid or dropped", -1, _total("refused"), digits=1),
    _summed(
        "wasted",
        "money offered and not spent, of a round's budget: in refused offers, and what winners offered above "
        "their price",
        -1,
        lambda run: run.wasted.sum(axis=0),
    ),
    of_market(
        "income Jain", "Jain index of the clients' income", 1, lambda run: jain(run.income), digits=3, limits=SHARE
    ),
    of_market(
        "income Gini", "Gini coefficient of the clients' income", -1,
        lambda run: gini(run.income), digits=3, limits=SHARE,
    ),
    of_market(
        "spending HHI",
        "Herfindahl-Hirschman index of the services' spending: 1/M if all spend alike, 1 if one alone spends", 0,
        lambda run: hhi(run["spent"].sum(axis=0)), digits=3, limits=SHARE,
    ),
    _summed(
        "client profit", "what served clients were paid above their costs; truthful clients' costs are their bids", 0,
        lambda run: run.by_service(run.earnings["profit"]), limits=ANY,
    ),
    _summed(
        "misreport profit", "the part of the client profit that comes from data that was not as reported", 0,
        _misreport_profit, applies=lambda run: not run.truthful, limits=ANY,
    ),
    run_measure(
        "overstated", "images that served clients reported and did not have, % of those that they reported", -1,
        lambda run: _overstated(run)[:-1], lambda run: float(_overstated(run)[-1]), digits=1,
        applies=lambda run: not run.truthful, limits=PERCENT,
    ),
    of_market(
        "services Jain", "Jain index over services of final accuracy / target, at most 1", 1,
        lambda run: jain(np.minimum(1.0, run["test_accuracy"][-1] / run.setting.targets)[run.present]),
        digits=4, limits=SHARE,
    ),
    of_market(
        "core use", "client cores that worked, % of all, in the rounds until the last service left", 0,
        _core_use, digits=1, limits=PERCENT,
    ),
)  # fmt: skip

LITERATURE = (
    _summed(
        "social welfare",
        "rewards of the services less the true costs of what served: sum over the rounds of reward - cost, the reward "
        "Omega^accuracy being what a service values its model at in that round, taken as money",
        1, _welfare, limits=ANY,
    ),
    _summed(
        "service utility", "rewards of the services less what they paid: sum over the rounds of reward - spent", 1,
        lambda run: run["reward"].sum(axis=0) - run["spent"].sum(axis=0), limits=ANY,
    ),
    _summed(
        "IR violations", "served offers whose client was paid less than its true cost (individual rationality)", -1,
        lambda run: run.by_service(run.earnings["profit"] < 0), digits=1,
    ),
    run_measure(
        "budget use", "largest share of a round's budget that was spent, %; of the market: largest of the services'", 0,
        _budget_use, lambda run: float(_budget_use(run).max()), digits=1,
    ),
    _summed(
        "budget violations", "rounds in which a service spent more than the round's budget (budget feasibility)", -1,
        lambda run: (run["spent"] > run["budget"]).sum(axis=0), digits=1,
    ),
    of_market(
        "worst service", "final accuracy of the service that has the lowest, %", 1,
        lambda run: float(_final(run)[run.present].min()), limits=PERCENT,
    ),
    _summed(
        "communication",
        "bytes that travelled: a model down for each awarded offer, an update up for each that was served; 4 for each "
        "parameter of the service's model, or its model_bytes; on a surrogate, of the model that it stands for",
        -1, _communication, digits=0, applies=lambda run: None not in _sizes(run),
    ),
)  # fmt: skip
"""Those that reports show when they are asked for by name: all that a report tests makes each test stricter (Holm)."""

_REPLAYED = "flmarket.analysis.results.replayed"  # which takes pandas

BUILT_IN: Mapping[str, Measure | str] = {it.name: it for it in (*MEASURES, *LITERATURE)} | {
    "Shapley correlation": f"{_REPLAYED}:SHAPLEY_CORRELATION",
    "leave-one-out correlation": f"{_REPLAYED}:LEAVE_ONE_OUT_CORRELATION",
    "envy": f"{_REPLAYED}:ENVY",
}


def own_measures() -> list[Measure]:
    """Return the measures that plug-in files, a script or a notebook have registered."""
    return [ALL_MEASURES.load(name) for name in ALL_MEASURES.registered]


def report_measures(names: Sequence[str] = ()) -> list[Measure]:
    """Return the measures of these names; if there are none, those of every report, and the user's own.

    Raises:
        UnknownPluginError, PluginError: as in ``Registry.load``.
    """
    return [ALL_MEASURES.load(name) for name in dict.fromkeys(names)] or [*MEASURES, *own_measures()]


def to_target(runs: "Sequence[RunResult]", service: str, measure: str) -> RoundsToTarget:
    """Return when runs met the target of a service, or of each one for ``MARKET``, as a ``TO_TARGET`` counts.

    Those that never took part are left out.
    """
    if service == MARKET:  # runs at several points of a sweep may have different numbers of services
        rounds, reached = zip(*([of[run.present] for of in TO_TARGET[measure](run)] for run in runs), strict=True)
        return RoundsToTarget(np.concatenate(rounds), np.concatenate(reached))
    m = runs[0].setting.services.index(service)
    by_service = RoundsToTarget.stack(TO_TARGET[measure](run) for run in runs if run.came[m])
    return RoundsToTarget(by_service.rounds[:, m], by_service.reached[:, m])
