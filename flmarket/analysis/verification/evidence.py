"""A run's logs as the rules of ``flmarket verify`` see them: data frames, and what they should follow from.

That is the scenario, and the world that it makes with the seed: the clients' data and bids are drawn again, because
their draws define them (``des.clients.population``); clients that learn learn again, from what the logs say they were
paid. Nothing here is asked of the market.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from des.availability import Interval
from des.behaviours.behaviour import BEHAVIOURS, TRUTHFUL, Behaviour, BehaviourError, Truthful
from des.clients.population import Held, Population, Qualities
from des.log_records import Outcome
from fl.arithmetic.draws import draw_key
from fl.arrays import IntArray, UInt32Array
from fl.data.quality import PUBLISHED, DQIParameters
from fl.surrogate.curves import Curve
from fl.surrogate.fitted import FitError
from fl.training.jobs import TrainingJob
from flmarket.analysis.tables import read_table
from flmarket.analysis.verification.conditions import Conditions, conditions
from flmarket.analysis.verification.known_data import KnownData
from flmarket.core.errors import InputError
from scenarios.build import Shelf, backend_of, build_federation, fits_of, known_curve, population_spec
from scenarios.file.availability import trace_of
from scenarios.file.checks import played
from scenarios.file.schema import Scenario, Service
from scenarios.loader import parse
from scenarios.logs.columns import tables_of
from scenarios.logs.directory import SCENARIO, RunDirectory, State
from scenarios.plugins import require_same_plugins

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
        if run.state is not State.COMPLETE:
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
    def epochs(self) -> Mapping[str, int]:
        """The number of times that each service's clients go through their data in a round."""
        return {it.name: self.scenario.training_for(it.dataset).local_epochs for it in self.scenario.services}

    @cached_property
    def numbers(self) -> list[int]:
        """The rounds that were played."""
        return self.rounds["round"].unique().tolist()

    def offers_of(self, number: int, service: str | None = None) -> pd.DataFrame:
        """Return the offers of a round, or those of one service."""
        offers = self.offers.iloc[self.places_of(number)]
        return offers if service is None else offers[offers["service"] == service]

    def rounds_of(self, number: int) -> pd.DataFrame:
        """Return the lines of a round in rounds.csv, by service."""
        return self.rounds[self.rounds["round"] == number].set_index("service")

    def places_of(self, number: int) -> slice:
        """Return where the offers of a round are in offers.csv, which is in the order of rounds."""
        first, after = np.searchsorted(self.offers["round"].to_numpy(), [number, number + 1]).tolist()
        return slice(first, after)

    @cached_property
    def offered_to(self) -> tuple[IntArray, IntArray]:
        """The services and the clients of all offers, [offers] each, as they are places in a world's arrays."""
        service = np.array(self.offers["service"].map(self.places), dtype=np.int64)
        return service, np.array(self.offers["client"], dtype=np.int64)

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
                    rows = self.offers_of(number)
                    paid = [None if amount != amount else int(amount) for amount in rows["paid"]]
                    offers = zip(rows["service"], rows["client"].tolist(), paid, strict=True)
                    self.population.close(number, offers, list(self.places))
        except BehaviourError as error:
            raise InputError(str(error)) from error

    def world(self, number: int) -> Qualities:
        """Return the world of a round that was played."""
        return next(world for at, world in self.worlds() if at == number)

    def held(self, number: int) -> Held:
        """Return what data clients hold in a round, whatever they report."""
        if number not in self._held:
            self._held.clear()  # rules go from round to round
            self._held[number] = self.population.held(number)
        return self._held[number]

    @cached_property
    def _held(self) -> dict[int, Held]:
        return {}

    def _dqi(self, dataset: str) -> DQIParameters:
        if self.scenario.dqi == "published" or dataset not in self.data.labels:
            return PUBLISHED
        key = f"dqi/{dataset}"
        try:
            return DQIParameters(**{name: float(value) for name, value in self.meta["fits"][key].items()})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(f"meta.json: fits: has no parameters {key!r} of eq. (6)") from None

    def curve_of(self, service: Service) -> Curve | None:
        """Return the learning curve that a service knew in the run, whatever fits are here now; None if it knew none.

        Its noise is that of the fit, also where the run went without.
        """
        if backend_of(self.scenario).trains:
            return known_curve(self.scenario, service)
        key = f"surrogate/{service.dataset}"
        try:
            return Curve.of(self.meta["fits"][key])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(f"meta.json: fits: has no parameters {key!r} of a learning curve") from None

    @cached_property
    def learned(self) -> Mapping[tuple[int, str], float]:
        """The accuracy by round and service where nothing was trained: that of the learning curves, followed again.

        Empty for a run with real training, and where the learning curves here are not those that meta.json records.
        """
        scenario = self.scenario
        if backend_of(scenario).trains or any(it.dataset not in self.data.datasets for it in scenario.services):
            return {}
        try:
            fits = {f"{fit.kind}/{fit.dataset}": dict(fit.parameters) for fit in fits_of(scenario)}
            if fits != self.meta.get("fits"):
                return {}
            federation = build_federation(scenario, self.seed, Shelf())
        except FitError:
            return {}
        found: dict[tuple[int, str], float] = {}
        for number in self.numbers:
            offers = self.offers_of(number)
            try:
                federation.train_round(number, self.jobs(number, offers[offers["outcome"] == Outcome.SERVED]))
            except (LookupError, ValueError, ArithmeticError):  # no data size or EMD of this scenario
                break
            found |= {(number, name): federation.accuracy(name) for name in self.places}
        return found

    @cached_property
    def exact_accuracy(self) -> pd.Series:
        """The accuracy behind the six decimals of each line of rounds.csv; NaN where nothing tells it."""
        measured = self.rounds["service"].map(self.data.measured).astype(float)
        share = (self.rounds["accuracy"] * measured).round() / measured
        followed = [
            self.learned.get(key, np.nan) for key in zip(self.rounds["round"], self.rounds["service"], strict=True)
        ]
        return pd.Series(followed, self.rounds.index).fillna(share)

    def jobs(self, number: int, offers: pd.DataFrame) -> list[TrainingJob]:
        """Return what the clients of a round's offers trained on, service by service, in the order of offers."""
        lies, clients = self.behaviour is None or self.behaviour.misreports, self.scenario.clients
        if not lies and not clients.lasting.persistence and clients.label_mix.dirichlet is None:
            columns = (offers[name].tolist() for name in ("service", "client", "data_size", "emd"))
            return [TrainingJob(*values) for values in zip(*columns, strict=True)]
        found = []
        for name in offers["service"].unique():
            own = offers[offers["service"] == name]
            claimed = own["data_size"].tolist() if lies else None
            found += self.held(number).jobs(name, self.places[name], own["client"].tolist(), claimed)
        return found

    def conditions(self, number: int) -> Conditions:
        """Return what a round is played under, after the interventions and the spending up to it."""
        if number not in self._conditions:
            spent: dict[Any, Any] = self._spent.loc[number].to_dict()
            self._conditions[number] = conditions(self.scenario, number, spent, self._intervals)
        return self._conditions[number]

    @cached_property
    def _conditions(self) -> dict[int, Conditions]:
        return {}

    @cached_property
    def _spent(self) -> pd.DataFrame:
        """The money each service spent before each round, micro-units: [rounds, services]."""
        spent = self.rounds.pivot_table("spent", "round", "service", aggfunc="sum")
        return spent.cumsum().shift(fill_value=0)

    @cached_property
    def _intervals(self) -> Sequence[Interval] | None:
        """The intervals in which clients are there; None if they always are, or if the trace is gone or has changed."""
        try:
            trace = trace_of(self.scenario)
            return trace.intervals if trace and trace.sha256 == self.meta["availability"]["sha256"] else None
        except (InputError, KeyError, TypeError):
            return None
