"""``flmarket report --bounds``: what a run's services got, against what they could have had.

See docs/bounds.md. What was reported and bid counts, as services know nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, inf
from pathlib import Path

import numpy as np
import pandas as pd

from des.clients.population import Qualities
from des.log_records import Outcome
from des.mechanism import DEFAULT
from des.money import MicroArray
from des.observation import Status
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.analysis.results.measures import averaged, of_market, run_measure
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.joint_bound import Bound, joint_bound
from flmarket.analysis.what_if.possible import MOST_CLIENTS, best_set, prices_in, reported_data, worth
from flmarket.analysis.what_if.union_bound import ReportedData, best_union
from flmarket.core.errors import InputError
from flmarket.core.tracking import tracked
from learning.statistics.measure import ANY, Measure
from scenarios.file.interventions import mechanisms_over_time


@dataclass(frozen=True, slots=True)
class RunBounds:
    """The DQI that served in a run, and its bounds. Arrays are [round, service], over the rounds that were played."""

    bound: FloatArray  # [N] the most that all services could have had together
    exact: BoolArray  # [N] whether that is reached by an allocation, or is the bound of the relaxation
    realised: FloatArray  # the DQI of the clients that served
    best: FloatArray  # the DQI of the best set that each service could have had by itself; NaN where not worked out
    active: BoolArray  # whether each service took part
    why_not: str = ""  # why the best sets are not worked out; empty if they are

    @property
    def ratio(self) -> float:
        """The bound over what was realised, both summed over the rounds; infinite where no client served."""
        bound, realised = fsum(self.bound.tolist()), fsum(self.realised.ravel().tolist())
        if not bound:
            return 1.0
        return bound / realised if realised else inf

    @property
    def share(self) -> FloatArray:
        """The share of its best that each service got over the run, % [M]; 100 where there was nothing to get."""
        best = self.best.sum(axis=0)
        share: FloatArray = np.where(best > 0, 100 * self.realised.sum(axis=0) / np.where(best > 0, best, 1.0), 100.0)
        return share

    @property
    def regret(self) -> FloatArray:
        """The regret of each service in each round, its best less what it got, DQI; 0 where it did not take part."""
        regret: FloatArray = self.best - self.realised
        return regret

    @property
    def mean_regret(self) -> FloatArray:
        """The mean of a service's regret over the rounds in which it took part [M]; 0 if there were none."""
        mean: FloatArray = self.regret.sum(axis=0) / np.maximum(self.active.sum(axis=0), 1)
        return mean


def run_bounds(logs: Logs, together: str = "additive") -> RunBounds:
    """Return the bounds of a run, with clients worth what they are ``together``: see ``set_worth.TOGETHER``."""
    if logs.behaviour is None:
        what = "behaviour" if logs.has_costs else "cost"
        problem = f"the clients' {what} of the run is not known here, or has changed, so its bids cannot be drawn"
        raise InputError(problem)
    if why := logs.scenario.outlasting:
        raise InputError(f"bounds are of rounds by themselves, and here {why}")
    why_not, bounds = _why_not(logs), []
    of = _OfUnions(logs) if together == "union" else _OfSums(logs)
    shape = len(logs.numbers), len(logs.places)
    budgets = logs.rounds["budget"].to_numpy().reshape(shape)
    active = ~logs.rounds["status"].isin([Status.LEFT, Status.WAITING]).to_numpy().reshape(shape)
    realised, best = np.zeros(shape), np.full(shape, np.nan if why_not else 0.0)
    for at, (number, world) in zip(tracked(range(shape[0]), "rounds"), logs.worlds(), strict=True):
        there = np.flatnonzero(active[at])
        bounds.append(of.all_together(number, world, there, budgets[at, there]))
        offers = logs.rows["offers"].where(logs.span_of(number))
        served = offers["outcome"] == Outcome.SERVED
        for name, m in logs.places.items():
            realised[at, m] = of.served(world, m, offers["client"][served & (offers["m"] == m)])
            if active[at, m] and not why_not:
                best[at, m] = of.best(number, world, name)
    value, exact = np.array([it.value for it in bounds]), np.array([it.exact for it in bounds], dtype=np.bool_)
    return RunBounds(value, exact, realised, best, active, why_not)


def _why_not(logs: Logs) -> str:
    others = {logs.scenario.cleared_by(rules) for rules in mechanisms_over_time(logs.scenario)} - {DEFAULT}
    clients = logs.scenario.clients.count
    if logs.scenario.clients.responds:
        return "clients that do all of the work only; in these runs they answer how much they do"
    if others:
        return f"{DEFAULT} only; these runs are cleared by {', '.join(sorted(others))}"
    if clients > MOST_CLIENTS:
        return f"up to {MOST_CLIENTS} clients; these runs have {clients}"
    return ""


@dataclass(frozen=True, slots=True)
class _OfSums:
    """Clients are worth the sum of their DQI."""

    logs: Logs

    def served(self, world: Qualities, m: int, clients: IntArray) -> float:
        return worth(world.dqi[m, clients].tolist())

    def best(self, number: int, world: Qualities, service: str) -> float:
        return best_set(self.logs, number, world, service).quality

    def all_together(self, number: int, world: Qualities, there: IntArray, budgets: MicroArray) -> Bound:
        now, values = self.logs.conditions(number), np.maximum(world.dqi[there], 0.0)
        values[:, list(now.offline)] = 0.0
        if world.serves is not None:
            values[~world.serves[there]] = 0.0
        cores = np.array(now.capacity, dtype=np.int64).tobytes()
        return _joint_bound(values.tobytes(), world.bid[there].tobytes(), budgets.tobytes(), values.shape, cores)


@dataclass(frozen=True, slots=True)
class _OfUnions:
    """Clients are worth the DQI of all their images together."""

    logs: Logs

    def served(self, world: Qualities, m: int, clients: IntArray) -> float:
        return self._data(world, m).worth(clients)

    def best(self, number: int, world: Qualities, service: str) -> float:
        prices = prices_in(self.logs, number, world, service)
        m, budget = self.logs.places[service], self.logs.conditions(number).budgets[service]
        return self._data(world, m).worth(self._chosen(number, world, m, prices, budget))

    def all_together(self, number: int, world: Qualities, there: IntArray, budgets: MicroArray) -> Bound:
        """Return what the services could have had if none took a client from another: an optimum where K is kept."""
        value, takers = 0.0, np.zeros(world.bid.shape[1], dtype=np.int64)
        for m, budget in zip(there.tolist(), budgets.tolist(), strict=True):
            chosen = self._chosen(number, world, m, world.bid[m], budget)
            value += self._data(world, m).worth(chosen)
            takers[chosen] += 1
        return Bound(value, exact=bool((takers <= self.logs.conditions(number).capacity).all()))

    def _data(self, world: Qualities, m: int) -> ReportedData:
        return reported_data(self.logs, world, m)

    def _chosen(self, number: int, world: Qualities, m: int, prices: MicroArray, budget: int) -> IntArray:
        there = np.ones(len(prices), dtype=np.bool_) if world.serves is None else world.serves[m].copy()
        there[list(self.logs.conditions(number).offline)] = False
        try:
            return best_union(self._data(world, m), prices, budget, np.flatnonzero(there))
        except InputError as error:
            raise InputError(f"round {number}, {self.logs.scenario.services[m].name}: {error}") from error


# Policies meet the same worlds: their runs of one seed ask the same again.
@lru_cache(maxsize=512)
def _joint_bound(values: bytes, bids: bytes, budgets: bytes, shape: tuple[int, ...], cores: bytes) -> Bound:
    worth, asked = np.frombuffer(values).reshape(shape), np.frombuffer(bids, dtype=np.int64).reshape(shape)
    return joint_bound(worth, asked, *(np.frombuffer(each, dtype=np.int64) for each in (budgets, cores)))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of runs, as measures."""

    of: Mapping[Path, RunBounds]  # each run's, by its path
    together: str = "additive"  # what clients are worth together

    @classmethod
    def read(cls, runs: Sequence[RunResult], together: str = "additive") -> "Bounds":
        """Work out the bounds of runs. It takes some time: see docs/bounds.md."""
        by_path = {}
        for run in tracked(sorted(runs, key=lambda run: (str(run.setting.folder), run.seed)), "runs bounded"):
            path = run.directory.path
            try:
                by_path[path] = run_bounds(Logs.read_whole(run.directory), together)
            except InputError as error:
                raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error
        return cls(by_path, together)

    @property
    def measures(self) -> tuple[Measure, ...]:
        of, union = self._run, self.together == "union"
        dqi, whose = ("union DQI", "all images") if union else ("DQI", "the clients")
        return (
            run_measure(
                f"{dqi} served",
                f"DQI (eq. 6) of {whose} that served, summed over services, mean over the rounds played; DQI below "
                "zero counts as zero; it is neither accuracy nor welfare, as it leaves out what clients' work costs", 1,
                lambda run: of(run).realised.mean(axis=0),
                lambda run: float(of(run).realised.sum(axis=1).mean()), digits=4,
            ),
            of_market(
                f"{dqi} bound",
                f"the most that the {dqi} served could have been under K and the budgets, every served client being "
                "paid its bid; from reported data and bids", 0, lambda run: float(of(run).bound.mean()), digits=4,
            ),
            of_market(
                "bound exact",
                "rounds whose bound is an optimum, %; in the others it is that of "
                + ("services that all have a core of every client" if union else "the linear relaxation")
                + ", which is never lower", 0, lambda run: float(100 * of(run).exact.mean()), digits=1,
            ),
            of_market(
                f"{dqi} bound ratio",
                f"{dqi} bound / {dqi} served, at least 1; undefined for runs in which no client served",
                -1, lambda run: of(run).ratio, digits=4, applies=lambda run: bool(np.isfinite(of(run).ratio)),
            ),
            averaged(
                "hindsight share",
                "DQI of the service's clients, % of that of the best set that it could have bought for sure within its "
                "budget, rivals' offers being what they were; of the market: mean over services; pay-as-offered only",
                1, lambda run: of(run).share, digits=1, applies=lambda run: not of(run).why_not,
            ),
            averaged(
                "regret",
                "DQI of the best set that the service could have bought for sure, less that of its clients, mean over "
                "the rounds in which it took part; of the market: mean over services; pay-as-offered only", -1,
                lambda run: of(run).mean_regret, digits=4, applies=lambda run: not of(run).why_not, limits=ANY,
            ),
        )  # fmt: skip

    def left_out(self, runs: Sequence[RunResult]) -> list[str]:
        """Return one line for each scenario for which hindsight is not worked out."""
        whys = {run.setting.label: why for run in runs if (why := self._run(run).why_not)}
        return [
            f"{label}: no hindsight share and no regret: they are worked out for {why}." for label, why in whys.items()
        ]

    def table(self, runs: Sequence[RunResult]) -> pd.DataFrame:
        """Return a line for each run, round and service that took part; NaN where hindsight is not worked out."""
        frames = []
        for run in runs:
            bounds = self._run(run)
            rounds, services = np.nonzero(bounds.active)
            columns = {"realised": bounds.realised, "best": bounds.best, "regret": bounds.regret}
            values = {name: value[rounds, services] for name, value in columns.items()}
            front = {"scenario": run.setting.label, "policy": run.policy, "seed": run.seed}
            places = {"round": rounds + 1, "service": np.array(run.setting.services)[services]}
            frames.append(pd.DataFrame({**front, **places, **values}, index=range(len(rounds))))
        return pd.concat(frames, ignore_index=True)

    def _run(self, run: RunResult) -> RunBounds:
        return self.of[run.directory.path]
