"""``flmarket report --bounds``: what a run's services got, against what they could have had.

See docs/bounds.md. What was reported and bid counts, as services know nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from pathlib import Path

import numpy as np

from des.log_records import Outcome
from des.mechanism import DEFAULT
from des.observation import Status
from des.population import Qualities
from fl.arrays import BoolArray, FloatArray
from flmarket.core.errors import InputError
from flmarket.core.tracking import tracked
from scenarios.file.interventions import mechanisms_over_time
from scenarios.judging.evidence import Logs
from scenarios.judging.measures import MEASURES, Measure
from scenarios.judging.possible import MOST_CLIENTS, possible
from scenarios.judging.results import RunResult
from scenarios.judging.verify import read_logs
from scenarios.judging.welfare import Bound, joint_bound
from scenarios.logs.directory import RunDirectory

COLUMNS = ("scenario", "policy", "seed", "round", "service", "realised", "best", "regret")
"""Of the CSV file of ``flmarket report --bounds-csv``."""


@dataclass(frozen=True, slots=True)
class RunBounds:
    """A run's welfare and its bounds. Arrays have the axes [round, service], over the rounds that were played."""

    bound: FloatArray  # [N] the most that all services could have had together
    exact: BoolArray  # [N] whether that is reached by an allocation, or is the bound of the relaxation
    realised: FloatArray  # the DQI of the clients that served
    # the DQI of the best set that each service could have had by itself; None where it is not worked out
    best: FloatArray | None
    active: BoolArray  # whether each service took part
    why_not: str = ""  # the reason for that; empty if there is none

    @property
    def anarchy(self) -> float:
        """The bound over what was realised, both summed over the rounds; infinite where nobody served."""
        bound, realised = fsum(self.bound.tolist()), fsum(self.realised.ravel().tolist())
        if not bound:
            return 1.0
        return bound / realised if realised else float("inf")

    @property
    def share(self) -> FloatArray:
        """What each service got of its best, summed over the rounds, % [M]; 100 where there was nothing to get."""
        assert self.best is not None  # noqa: S101 - the measure does not apply
        best = self.best.sum(axis=0)
        share: FloatArray = np.where(best > 0, 100 * self.realised.sum(axis=0) / np.where(best > 0, best, 1.0), 100.0)
        return share

    @property
    def regret(self) -> FloatArray:
        """What each service got less than its best in each round, DQI [N, M]; 0 where it did not take part."""
        assert self.best is not None  # noqa: S101 - the measure does not apply
        regret: FloatArray = self.best - self.realised
        return regret

    @property
    def mean_regret(self) -> FloatArray:
        """The mean of a service's regret over the rounds in which it took part [M]; 0 if there were none."""
        mean: FloatArray = self.regret.sum(axis=0) / np.maximum(self.active.sum(axis=0), 1)
        return mean


def run_bounds(logs: Logs) -> RunBounds:
    """Return a run's bounds."""
    if not logs.known or logs.behaviour is None:
        what = "a data set" if not logs.known else "the clients' behaviour"
        raise InputError(f"{what} of the run is not known here, or has changed, so its bids cannot be drawn")
    why_not = _why_not(logs)
    bounds: list[Bound] = []
    shape = len(logs.numbers), len(logs.places)
    realised, best, active = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    for at, (number, world) in zip(tracked(range(shape[0]), "rounds"), logs.worlds(), strict=True):
        bounds.append(_bound(logs, number, world))
        active[at, [logs.places[name] for name in _active(logs, number)]] = True
        for name, m in logs.places.items():
            served = [it["dqi"] for it in logs.offers_of.get((number, name), ()) if it["outcome"] is Outcome.SERVED]
            realised[at, m] = fsum(max(dqi, 0.0) for dqi in served)
        if not why_not:
            best[at] = _best(logs, number, world)
    value, exact = np.array([it.value for it in bounds]), np.array([it.exact for it in bounds], dtype=np.bool_)
    return RunBounds(value, exact, realised, None if why_not else best, active, why_not)


def _why_not(logs: Logs) -> str:
    others = {rules.mechanism for rules in mechanisms_over_time(logs.scenario)} - {DEFAULT}
    clients = logs.scenario.clients.count
    if others:
        return f"{DEFAULT} only; these runs are cleared by {', '.join(sorted(others))}"
    if clients > MOST_CLIENTS:
        return f"up to {MOST_CLIENTS} clients; these runs have {clients}"
    return ""


def _bound(logs: Logs, number: int, world: Qualities) -> Bound:
    conditions, rows = logs.conditions(number), _active(logs, number)
    places = [logs.places[name] for name in rows]
    worth = np.maximum(world.dqi[places], 0.0)
    worth[:, list(conditions.offline)] = 0.0
    return joint_bound(worth, world.bid[places], np.array(list(rows.values()), dtype=np.int64), conditions.cores)


def _best(logs: Logs, number: int, world: Qualities) -> FloatArray:
    conditions, found = logs.conditions(number), np.zeros(len(logs.places))
    made = {
        name: [(it["client"], it["payment"]) for it in logs.offers_of.get((number, name), ())] for name in logs.places
    }
    for name, budget in _active(logs, number).items():
        m = logs.places[name]
        rivals = [offers for other, offers in made.items() if other != name]
        found[m] = possible(
            world.bid[m], world.dqi[m], rivals, cores=conditions.cores, budget=budget, offline=conditions.offline
        ).quality
    return found


def _active(logs: Logs, number: int) -> dict[str, int]:
    """Return the budget of each service that takes part in a round, micro-units."""
    return {
        row["service"]: row["budget"]
        for row in logs.rows_of[number]
        if row["status"] not in (Status.LEFT, Status.WAITING)
    }


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of runs, as measures."""

    of: Mapping[Path, RunBounds]  # each run's, by its path

    @classmethod
    def read(cls, runs: Sequence[RunResult]) -> "Bounds":
        """Work out the bounds of runs. It takes some time: see docs/bounds.md."""
        return cls({run.directory.path: _read(run.directory) for run in tracked(runs, "runs bounded")})

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (*MEASURES, *self._own())

    def left_out(self, runs: Sequence[RunResult]) -> list[str]:
        """Return one line for each scenario for which hindsight is not worked out."""
        found = {run.setting.label: why for run in runs if (why := self._run(run).why_not)}
        return [
            f"{label}: no hindsight share and no regret: they are worked out for {why}." for label, why in found.items()
        ]

    def rows(self, runs: Sequence[RunResult]) -> Iterator[tuple[object, ...]]:
        """Yield a row of ``COLUMNS`` for each run, round and service that took part.

        What a service could have had is empty where hindsight is not worked out.
        """
        for run in runs:
            found = self._run(run)
            for at, m in np.argwhere(found.active).tolist():
                realised = float(found.realised[at, m])
                best = ("", "") if found.best is None else (float(found.best[at, m]), float(found.regret[at, m]))
                service = run.setting.services[m]
                yield run.setting.label, run.policy, run.seed, at + 1, service, realised, *best

    def _run(self, run: RunResult) -> RunBounds:
        return self.of[run.directory.path]

    def _own(self) -> tuple[Measure, ...]:
        return (
            Measure(
                "welfare",
                "DQI (eq. 6) of the clients that served, summed over services, mean over the rounds played; DQI below "
                "zero counts as zero, and DQI is not accuracy",
                1,
                lambda r: self._run(r).realised.mean(axis=0),
                lambda r: float(self._run(r).realised.sum(axis=1).mean()),
                4,
            ),
            Measure(
                "welfare bound",
                "the most that welfare could have been under K and the budgets, every served client being paid its "
                "bid; from reported data and bids",
                0,
                None,
                lambda r: float(self._run(r).bound.mean()),
                4,
            ),
            Measure(
                "bound exact",
                "rounds whose bound is an optimum, %; in the others it is that of the linear relaxation, which is "
                "never lower",
                0,
                None,
                lambda r: float(100 * self._run(r).exact.mean()),
                1,
            ),
            Measure(
                "price of anarchy",
                "welfare bound / welfare, at least 1; not defined for runs in which nobody served",
                -1,
                None,
                lambda r: self._run(r).anarchy,
                4,
                lambda r: bool(np.isfinite(self._run(r).anarchy)),
            ),
            Measure(
                "hindsight share",
                "DQI of the service's clients, % of that of the best set that it could have bought for sure within its "
                "budget, rivals' offers being what they were; of the market: mean over services; pay-as-offered only",
                1,
                lambda r: self._run(r).share,
                lambda r: float(self._run(r).share.mean()),
                1,
                lambda r: self._run(r).best is not None,
            ),
            Measure(
                "regret",
                "DQI of the best set that the service could have bought for sure, less that of its clients, mean over "
                "the rounds in which it took part; of the market: mean over services; pay-as-offered only",
                -1,
                lambda r: self._run(r).mean_regret,
                lambda r: float(self._run(r).mean_regret.mean()),
                4,
                lambda r: self._run(r).best is not None,
                (-inf, inf),
            ),
        )


def _read(run: RunDirectory) -> RunBounds:
    logs, problems = read_logs(run)
    if logs is None or problems:
        raise InputError(f"{run.path}: {problems[0]}")
    try:
        return run_bounds(logs)
    except InputError as error:
        raise InputError(f"{run.path}: {error}") from error
