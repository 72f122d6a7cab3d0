"""Measures that runs are judged by: one number for the market, and one for each service where that makes sense."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray
from learning.statistics import RoundsToTarget, area_under_curve

if TYPE_CHECKING:  # the list of a folder's runs needs no more than this module
    from flmarket.analysis.results.run_results import RunResult

Services = Callable[["RunResult"], FloatArray]  # a run's [M] values

MARKET = "market"  # takes the place of a service's name where a measure is of the whole market


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to judge a run."""

    name: str  # the measure's name, in tables and as a column
    meaning: str  # one sentence, with the unit
    better: int  # 1 if more is better, -1 if less is, 0 where that depends on who looks
    services: Services | None  # None for a measure of the market alone
    market: Callable[["RunResult"], float]  # returns the value of the whole market
    digits: int = 2  # decimals in Markdown and HTML
    applies: Callable[["RunResult"], bool] = lambda _: True  # returns whether a run has the measure at all
    limits: tuple[float, float] = (0.0, inf)  # the lowest and the highest value that it can have

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as tables show it; ``sign`` is ``+`` for differences."""
        rounded = round(value, self.digits) + 0.0  # -0.0 + 0.0 is 0.0
        return f"{rounded:{sign}.{self.digits}f}"


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


def _core_use(run: "RunResult") -> float:
    rounds = int((run.to_target.rounds + run.setting.arrivals - 1).max())  # until the last service left
    return float(100 * run["served"].sum() / (run.setting.scenario.clients.count * run.setting.cores[:rounds].sum()))


def averaged(name: str, meaning: str, better: int, services: Services, **more: Any) -> Measure:
    """Return a measure whose value of the whole market is the mean of the services'."""
    return Measure(name, meaning, better, services, lambda run: float(services(run).mean()), **more)


def _summed(name: str, meaning: str, better: int, services: Services, **more: Any) -> Measure:
    """Return a measure whose value of the whole market is the sum of the services'."""
    return Measure(name, meaning, better, services, lambda run: float(services(run).sum()), **more)


def of_market(name: str, meaning: str, better: int, market: Callable[["RunResult"], float], **more: Any) -> Measure:
    """Return a measure of the whole market alone."""
    return Measure(name, meaning, better, None, market, **more)


PERCENT, SHARE, ANY = (0.0, 100.0), (0.0, 1.0), (-inf, inf)  # limits of measures

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

MEASURES = (
    averaged("final accuracy", "accuracy after the last round, %", 1, _final, limits=PERCENT),
    averaged("AUC", "mean accuracy over all rounds, %", 1,
        lambda run: 100 * area_under_curve(run["test_accuracy"], run.setting.arrivals), limits=PERCENT),
    averaged(
        "target met", "share of runs that met the target, %", 1,
        lambda run: np.where(run.to_target.reached, 100.0, 0.0), digits=1, limits=PERCENT,
    ),
    ROUNDS_TO_TARGET,
    averaged(
        "normalised reward", "mean over the rounds of reward / Omega^target, as in the paper", 1,
        lambda run: area_under_curve(run.normalised_reward, run.setting.arrivals), digits=4, limits=SHARE,
    ),
    Measure(
        "spent", "money paid to clients in the whole run", 0,
        _total("spent"), lambda run: float(run["spent"].sum()),
    ),
    Measure(
        "cost per point", "money paid for each percentage point of final accuracy", -1,
        lambda run: _cost_per_point(run["spent"].sum(axis=0), _final(run)),
        lambda run: float(_cost_per_point(run["spent"].sum(), _final(run).sum())),
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
    Measure(
        "overstated", "images that served clients reported and did not have, % of those that they reported", -1,
        lambda run: _overstated(run)[:-1], lambda run: float(_overstated(run)[-1]), digits=1,
        applies=lambda run: not run.truthful, limits=PERCENT,
    ),
    of_market(
        "services Jain", "Jain index over services of final accuracy / target, at most 1", 1,
        lambda run: jain(np.minimum(1.0, run["test_accuracy"][-1] / run.setting.targets)), digits=4, limits=SHARE,
    ),
    of_market(
        "core use", "client cores that worked, % of all, in the rounds until the last service left", 0,
        _core_use, digits=1, limits=PERCENT,
    ),
)  # fmt: skip


def values(run: "RunResult", measure: Measure) -> Mapping[str, float]:
    """Return a run's values of a measure by service, and the market's; none where the measure does not apply."""
    if not measure.applies(run):
        return {}
    of_services = [] if measure.services is None else measure.services(run).tolist()
    return dict(zip(run.setting.services, of_services, strict=False)) | {MARKET: measure.market(run)}


def to_target(runs: "Sequence[RunResult]", service: str) -> RoundsToTarget:
    """Return when runs met the target of a service, or of each service for ``MARKET``."""
    if service == MARKET:  # runs at several points of a sweep may have different numbers of services
        rounds, reached = zip(*(run.to_target for run in runs), strict=True)
        return RoundsToTarget(np.concatenate(rounds), np.concatenate(reached))
    by_service = RoundsToTarget.stack(run.to_target for run in runs)
    m = runs[0].setting.services.index(service)
    return RoundsToTarget(by_service.rounds[:, m], by_service.reached[:, m])
