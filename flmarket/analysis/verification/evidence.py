"""A run's logs, and what they should follow from: the scenario, and the world that it makes with the seed.

The clients' data and bids are drawn again, because their draws define them (``des.clients.population``); clients that
learn learn again, from what the logs say they were paid. Nothing here is asked of the market.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from des.availability import Interval
from des.behaviours.behaviour import BEHAVIOURS, TRUTHFUL, Behaviour, BehaviourError, Truthful
from des.clients.population import Population, Qualities
from des.log_records import Outcome
from des.money import MicroArray
from des.observation import Status
from fl.arithmetic.draws import draw_key
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray, UInt32Array
from fl.data.dqi import PUBLISHED, DQIParameters
from fl.surrogate.fitted import FitError
from fl.training.jobs import TrainingJob
from flmarket.analysis.log_frames import read_table
from flmarket.analysis.verification.conditions import Conditions, conditions
from flmarket.analysis.verification.findings import Rows
from flmarket.analysis.verification.known_data import KnownData
from flmarket.core.errors import InputError
from scenarios.build import Shelf, backend_of, build_federation, fits_of, population_spec
from scenarios.file.availability import trace_of
from scenarios.file.checks import played
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.columns import tables_of
from scenarios.logs.directory import SCENARIO, RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import require_same_plugins


class Drawn(NamedTuple):
    """The draws of the run's seed."""

    # for each offer, by column of offers.csv; ``held_data_size``, ``held_emd`` and ``cost`` of clients.csv are the
    # truth, whatever clients report
    offers: Mapping[str, AnyArray]
    lowest: MicroArray  # [rounds, M] the lowest bids
    # by round, where another mechanism than the paper's clears it: bids and data sizes [M, C]
    asked: Mapping[int, tuple[MicroArray, IntArray]]


_ANY_LABELS = 2  # stands for the labels of a data set of which they are not known; what depends on them is not compared


@dataclass(frozen=True)
class Logs:
    """A run's logs, and what they should follow from."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records
    rounds: pd.DataFrame  # the tables; money in micro-units
    offers: pd.DataFrame
    events: pd.DataFrame
    clients: pd.DataFrame | None = None  # None where all clients are truthful

    @classmethod
    def read(cls, run: RunDirectory) -> "Logs":
        """Read the logs of a run, whether its policies and mechanism are known here or not."""
        scenario = parse(run.scenario_text(), str(run.path / SCENARIO), catalogue=played())
        names = tables_of(truthful=scenario.clients.behaviour.kind == TRUTHFUL)
        return cls(scenario, run.meta(), **{name: read_table(run, name) for name in names})

    @classmethod
    def read_whole(cls, run: RunDirectory) -> "Logs":
        """Read the logs of a complete run of which no file is damaged."""
        if run.state is not RunState.COMPLETE:
            raise InputError(f"{run.path}: {run.unfinished()}")
        run.require_whole(digests=True)
        return cls.read(run)

    @property
    def seed(self) -> int:
        return int(self.meta["seed"])

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {service.name: m for m, service in enumerate(self.scenario.services)}

    @cached_property
    def numbers(self) -> list[int]:
        """The rounds that were played."""
        return self.rounds["round"].unique().tolist()

    @property
    def frames(self) -> Mapping[str, pd.DataFrame]:
        """The tables, by name."""
        tables = {"rounds": self.rounds, "offers": self.offers, "events": self.events, "clients": self.clients}
        return {name: table for name, table in tables.items() if table is not None}

    @cached_property
    def rows(self) -> Mapping[str, Rows]:
        """The tables as arrays, by name."""
        return {name: Rows.of(name, frame) for name, frame in self.frames.items()}

    def offers_of(self, number: int, service: str | None = None) -> pd.DataFrame:
        """Return the offers of a round, or those of one service."""
        offers = self.offers.iloc[self.places_of(number)]
        return offers if service is None else offers[offers["service"] == service]

    def rounds_of(self, number: int) -> pd.DataFrame:
        """Return the lines of a round in rounds.csv, by service."""
        return self.rounds[self.rounds["round"] == number].set_index("service")

    def places_of(self, number: int) -> slice:
        """Return where the offers of a round are in offers.csv, which is in the order of rounds."""
        first, after = np.searchsorted(self.rows["offers"]["round"], [number, number + 1]).tolist()
        return slice(first, after)

    def services_of(self, rows: Rows) -> IntArray:
        """Return the place of each row's service in the scenario, -1 where it concerns none."""
        return np.array([self.places.get(name, -1) for name in rows["service"].tolist()], dtype=np.int64)

    @cached_property
    def offered_to(self) -> tuple[IntArray, IntArray]:
        """The services and the clients of all offers, [offers] each, as they are places in a world's arrays."""
        return self.services_of(self.rows["offers"]), self.rows["offers"]["client"]

    @cached_property
    def lines_of_offers(self) -> IntArray:
        """The place in rounds.csv of the round and the service of each offer, [offers]."""
        return (self.rows["offers"]["round"] - 1) * len(self.places) + self.offered_to[0]

    @cached_property
    def takes_part(self) -> BoolArray:
        """Whether the service of each line of rounds.csv took part in the round, [rounds * M]."""
        return ~self.rows["rounds"].has("status", Status.LEFT, Status.WAITING)

    def by_round(self, rows: Rows, value: Callable[[Conditions], Any]) -> AnyArray:
        """Return something of the conditions under which each row's round was played."""
        found: AnyArray = np.array([value(self.conditions(number)) for number in self.numbers])[rows["round"] - 1]
        return found

    @cached_property
    def data(self) -> KnownData:
        return KnownData(self.scenario, self.meta)

    @property
    def known(self) -> bool:
        return all(service.dataset in self.data.labels for service in self.scenario.services)

    @cached_property
    def behaviour(self) -> Behaviour | None:
        """The clients' behaviour; None if it is a plug-in that is not here, or has changed since."""
        thing = f"{BEHAVIOURS.kind} {self.scenario.clients.behaviour.kind}"
        try:
            require_same_plugins({key: value for key, value in self.meta["plugins"].items() if key == thing}, "")
            return population_spec(self.scenario).behaviour
        except (InputError, KeyError, TypeError, AttributeError):
            return None

    @cached_property
    def ties(self) -> UInt32Array:
        return draw_key(self.seed, "ties")

    @cached_property
    def population(self) -> Population:
        """The clients, whose data and bids can be drawn again for each round.

        What depends on labels is meaningless for a service whose data set has unknown labels; if there is one, so are
        all bids. Without a ``behaviour``, so are bids and reports.
        """
        services = self.scenario.services
        labels = [self.data.labels.get(it.dataset, _ANY_LABELS) for it in services]
        spec = population_spec(self.scenario, self.behaviour or Truthful())
        if not self.known:
            spec = replace(spec, cost_per_emd=0.0)  # a cost of such labels could be negative
        try:
            return Population(spec, labels, [self._dqi(it.dataset) for it in services], self.seed)
        except (ValueError, BehaviourError) as error:  # a scenario that no run has played
            raise InputError(f"scenario.toml: clients: {error}") from error

    def worlds(self) -> Iterator[tuple[int, Qualities]]:
        """Yield each round's world as services saw it, in order; clients learn again from what they were paid."""
        self.population.reset()
        try:
            for number in self.numbers:
                yield number, self.population.draw(number)
                if self.population.learns:
                    rows = self.rows["offers"].where(self.places_of(number))
                    paid = [None if amount != amount else int(amount) for amount in rows["paid"].tolist()]
                    offers = zip(rows["service"].tolist(), rows["client"].tolist(), paid, strict=True)
                    self.population.close(number, offers, list(self.places))
        except BehaviourError as error:
            raise InputError(str(error)) from error

    def world(self, number: int) -> Qualities:
        """Return the world of a round that was played."""
        return next(world for at, world in self.worlds() if at == number)

    @cached_property
    def drawn(self) -> "Drawn":
        """The draws of the run's seed, as far as they are compared with the logs; each round's world is drawn once."""
        service, client = self.offered_to
        rounds, lowest, asked = [], [], {}
        for number, world in self.worlds():
            offers = self.places_of(number)
            reported = {"data_size": world.data_size, "emd": world.emd, "dqi": world.dqi, "bid": world.bid}
            held = {"held_data_size": world.held.data_size, "held_emd": world.held.emd, "cost": world.held.cost}
            rounds.append({name: it[service[offers], client[offers]] for name, it in (reported | held).items()})
            lowest.append(world.bid.min(axis=1))
            if not self.conditions(number).paper:
                asked[number] = world.bid, world.data_size
        offers_ = {name: np.concatenate([of[name] for of in rounds]) for name in rounds[0]}
        return Drawn(offers_, np.array(lowest), asked)

    def _dqi(self, dataset: str) -> DQIParameters:
        if self.scenario.dqi == "published" or dataset not in self.data.labels:
            return PUBLISHED
        key = f"dqi/{dataset}"
        try:
            return DQIParameters(**{name: float(value) for name, value in self.meta["fits"][key].items()})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(f"meta.json: fits: has no parameters {key!r} of eq. (6)") from None

    @cached_property
    def learned(self) -> FloatArray:
        """The accuracy of each line of rounds.csv where none was trained: that of the learning curves, followed again.

        NaN for a run with real training, and where the learning curves here are not those that meta.json records.
        """
        scenario, found = self.scenario, np.full((len(self.numbers), len(self.places)), np.nan)
        if backend_of(scenario).trains or any(it.dataset not in self.data.datasets for it in scenario.services):
            return found.ravel()
        try:
            fits = {f"{fit.kind}/{fit.dataset}": dict(fit.parameters) for fit in fits_of(scenario)}
            if fits != self.meta.get("fits"):
                return found.ravel()
            federation = build_federation(scenario, self.seed, Shelf())
        except FitError:
            return found.ravel()
        offers = self.rows["offers"]
        for number in self.numbers:
            made = offers.where(self.places_of(number))
            try:
                federation.train_round(number, self.jobs(number, made.where(made.has("outcome", Outcome.SERVED))))
            except (LookupError, ValueError, ArithmeticError):  # no data size or EMD of this scenario
                break
            found[number - 1] = [federation.accuracy(name) for name in self.places]
        return found.ravel()

    @cached_property
    def exact_accuracy(self) -> FloatArray:
        """The accuracy behind the six decimals of each line of rounds.csv; NaN where nothing tells it."""
        rounds = self.rows["rounds"]
        measured = np.array([self.data.measured.get(name, np.nan) for name in rounds["service"].tolist()])
        share = np.rint(rounds["accuracy"] * measured) / measured
        return np.where(np.isnan(self.learned), share, self.learned)

    def jobs(self, number: int, offers: Rows | pd.DataFrame) -> list[TrainingJob]:
        """Return what the clients of a round's offers trained on, service by service, in the order of offers."""
        lies, clients = self.behaviour is None or self.behaviour.misreports, self.scenario.clients
        columns = [offers[name].tolist() for name in ("service", "client", "data_size", "emd")]
        if not lies and not clients.lasting.persistence and clients.label_mix.dirichlet is None:
            return [TrainingJob(*values) for values in zip(*columns, strict=True)]
        held, found = self.population.held(number), []
        for name in dict.fromkeys(columns[0]):
            own = [(client, size) for service, client, size, _ in zip(*columns, strict=True) if service == name]
            claimed = [size for _, size in own] if lies else None
            found += held.jobs(name, self.places[name], [client for client, _ in own], claimed)
        return found

    def conditions(self, number: int) -> Conditions:
        """Return what a round is played under, after the interventions and the spending up to it."""
        return self._conditions[number - 1]

    @cached_property
    def _conditions(self) -> list[Conditions]:
        names, spent = list(self.places), self.rows["rounds"]["spent"].reshape(-1, len(self.places))
        before = [dict(zip(names, sums, strict=True)) for sums in (spent.cumsum(axis=0) - spent).tolist()]
        return [conditions(self.scenario, n, sums, self._intervals) for n, sums in enumerate(before, start=1)]

    @cached_property
    def _intervals(self) -> Sequence[Interval] | None:
        """The intervals in which clients are there; None if they always are, or if the trace is gone or has changed."""
        try:
            trace = trace_of(self.scenario)
            return trace.intervals if trace and trace.sha256 == self.meta["availability"]["sha256"] else None
        except (InputError, KeyError, TypeError):
            return None
