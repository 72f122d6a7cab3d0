"""A run's logs as the rules of ``flmarket verify`` see them: rows of values, and what they should follow from.

That is the scenario, and the world that it makes with the seed: the clients' data and bids are drawn again, because
their draws define them (``des.population``); clients that learn learn again, from what the logs say they were paid.
Nothing here is asked of the market.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from des.availability import Interval
from des.behaviour import BEHAVIOURS, Behaviour, BehaviourError, Truthful
from des.log_records import Outcome
from des.money import Micro
from des.population import Held, Population, Qualities
from fl.arrays import UInt32Array
from fl.draws import draw_key
from fl.fitted import FitError
from fl.jobs import TrainingJob
from fl.quality import PUBLISHED, DQIParameters
from fl.surrogate import Curve
from flmarket.core.errors import InputError
from scenarios.build import Shelf, backend_of, build_federation, fits_of, known_curve, population_spec
from scenarios.file.availability import trace_of
from scenarios.file.schema import Scenario, Service
from scenarios.judging.conditions import Conditions, conditions
from scenarios.judging.known_data import KnownData
from scenarios.plugins import require_same_plugins

Row = Mapping[str, Any]  # one line of a table: the values of its columns. Money in micro-units, None where it is empty.


_ANY_LABELS = 2  # stands for the labels of a data set of which they are not known; what depends on them is not compared


@dataclass(frozen=True)
class Logs:
    """A run's logs, and what they should follow from."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records
    seed: int  # the run's seed
    rounds: Sequence[Row]  # the rows of each table that every run has
    offers: Sequence[Row]
    events: Sequence[Row]
    clients: Sequence[Row] | None = None  # the rows of clients.csv; None where all clients are truthful

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {service.name: m for m, service in enumerate(self.scenario.services)}

    @cached_property
    def numbers(self) -> list[int]:
        found = dict.fromkeys(row["round"] for row in self.rounds)
        return [number for number in found if 1 <= number <= self.scenario.rounds]

    @cached_property
    def rows_of(self) -> Mapping[int, list[Row]]:
        return _by_round(self.rounds)

    @cached_property
    def offers_in(self) -> Mapping[int, list[Row]]:
        return _by_round(self.offers)

    @cached_property
    def events_in(self) -> Mapping[int, list[Row]]:
        return _by_round(self.events)

    @cached_property
    def offers_of(self) -> Mapping[tuple[int, str], list[Row]]:
        return _by_round_and_service(self.offers)

    @cached_property
    def events_of(self) -> Mapping[tuple[int, str | None], list[Row]]:
        """All events, by round and service; those that happen to no service have None."""
        return _by_round_and_service(self.events)

    @cached_property
    def data(self) -> KnownData:
        return KnownData(self.scenario, self.meta)

    @property
    def known(self) -> bool:
        return all(service.dataset in self.data.labels for service in self.scenario.services)

    @cached_property
    def behaviour(self) -> Behaviour | None:
        """How clients behave; None if that is up to a plug-in that is not here, or has changed since."""
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
        names = list(self.places)
        try:
            for number in self.numbers:
                yield number, self.population.draw(number)
                paid = [(it["service"], it["client"], it["paid"]) for it in self.offers_in.get(number, [])]
                known = [it for it in paid if it[0] in self.places and 0 <= it[1] < self.scenario.clients.count]
                self.population.close(number, known, names)
        except BehaviourError as error:
            raise InputError(str(error)) from error

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
            served = [offer for offer in self.offers_in.get(number, []) if offer["outcome"] is Outcome.SERVED]
            try:
                federation.train_round(number, self.jobs(number, served))
            except (LookupError, ValueError, ArithmeticError):  # no service, data size or EMD of this scenario
                return found
            found |= {(number, name): federation.accuracy(name) for name in self.places}
        return found

    def exact_accuracy(self, row: Row) -> float | None:
        """Return the accuracy behind the six decimals of a row of rounds.csv; None where nothing tells it."""
        followed = self.learned.get((row["round"], row["service"]))
        if followed is not None or (measured := self.data.measured.get(row["service"])) is None:
            return followed
        return float(round(row["accuracy"] * measured) / measured)

    def jobs(self, number: int, rows: Sequence[Row]) -> list[TrainingJob]:
        """Return what the served clients of a round's offers trained on, service by service, in the order of offers."""
        lies, clients = self.behaviour is None or self.behaviour.misreports, self.scenario.clients
        if not lies and not clients.lasting.persistence and clients.label_mix.dirichlet is None:
            return [TrainingJob(row["service"], row["client"], row["data_size"], row["emd"]) for row in rows]
        found = []
        for name in dict.fromkeys(row["service"] for row in rows):
            own = [row for row in rows if row["service"] == name]
            claimed = [row["data_size"] for row in own] if lies else None
            found += self.held(number).jobs(name, self.places[name], [row["client"] for row in own], claimed)
        return found

    def conditions(self, number: int) -> Conditions:
        """Return what a round is played under, after the interventions and the spending up to it."""
        if number not in self._conditions:
            self._conditions[number] = conditions(self.scenario, number, self._spent.get(number, {}), self._intervals)
        return self._conditions[number]

    @cached_property
    def _intervals(self) -> Sequence[Interval] | None:
        """When clients are there; None if they always are, or if the trace is gone or has changed since."""
        try:
            trace = trace_of(self.scenario)
            return trace.intervals if trace and trace.sha256 == self.meta["availability"]["sha256"] else None
        except (InputError, KeyError, TypeError):
            return None

    @cached_property
    def _spent(self) -> Mapping[int, Mapping[str, Micro]]:
        """What each service spent before each round, by round; empty where budgets are per round alone."""
        if all(service.total_budget is None for service in self.scenario.services):
            return {}
        found: dict[int, Mapping[str, Micro]] = {}
        spent: dict[str, Micro] = {}
        for number, rows in groupby(self.rounds, key=lambda row: row["round"]):
            found[number] = dict(spent)
            for row in rows:
                spent[row["service"]] = spent.get(row["service"], 0) + row["spent"]
        return found

    @cached_property
    def _conditions(self) -> dict[int, Conditions]:
        return {}


def _by_round(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["round"]].append(row)
    return found


def _by_round_and_service(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["round"], row["service"]].append(row)
    return found
