"""A run's logs, and what they should follow from: the scenario, and the world that it makes with the seed.

The clients' data and bids are drawn again, because their draws define them (``des.clients.population``); clients that
learn learn again, from what the logs say they were paid. Nothing here is asked of the market.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from des.allocation import tie_order_of, turns_of
from des.behaviour import Behaviour, BehaviourError
from des.behaviours.truthful import Truthful
from des.clients.population import Population, Qualities
from des.contracts import Contract, Contracts
from des.cost import COSTS, CostError
from des.costs.linear import Linear
from des.log_records import Outcome
from des.mechanism import MECHANISMS, ClearingError, Mechanism, RoundView
from des.money import MICRO, MicroArray
from des.observation import Status
from des.response import RESPONSES, Response
from des.responses.moral_hazard import MoralHazard
from fl.arithmetic.draws import draw_key
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray, read_only
from fl.data.dataset import DatasetInfo
from fl.data.dqi import PRINTED, DQIParameters
from fl.data.registry import DATASETS, info, is_path, load
from fl.data.validation_split import held_out
from fl.surrogate.fitted import Fit, FitError
from fl.training.jobs import Federation, TrainingJob
from flmarket.analysis.log_frames import read_by_rounds, read_table
from flmarket.analysis.verification.findings import Rows
from flmarket.analysis.verification.ongoing_work import Followed, Sofar, follow
from flmarket.analysis.verification.round_conditions import Hired, RoundConditions, conditions, stay_of
from flmarket.core.errors import InputError
from scenarios.build import Shelf, backend_of, build_federation, contract_terms, eligibility, fits_of, population_spec
from scenarios.file.checks import played
from scenarios.file.client_files import Intervals, intervals_of, require_same_files, trace_of
from scenarios.file.interventions import at
from scenarios.file.schema import Market, NamedPlugin, Scenario
from scenarios.loader import parse
from scenarios.logs.columns import tables_of
from scenarios.logs.directory import SCENARIO, RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import require_same_plugins


def is_same(meta: Mapping[str, Any], thing: str) -> bool:
    """Whether a thing such as ``data set NAME`` is, if it is a plug-in's, here and the one of the run."""
    try:
        require_same_plugins({key: value for key, value in meta["plugins"].items() if key == thing}, "")
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class KnownData:
    """The data sets of a run's services, as far as known without their images: labels, and numbers of images."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records

    @cached_property
    def datasets(self) -> Mapping[str, DatasetInfo]:
        """The descriptions of the services' data sets, except of those that are not here or have changed since.

        Of a user's own files and of unofficial ones, these are looked at.
        """
        infos = {}
        for name in dict.fromkeys(service.dataset for service in self.scenario.services):
            recorded = self.meta["data"].get(name)
            with suppress(InputError):
                if is_path(name) or (recorded and not recorded["official"]):
                    dataset = load(name, download=False)
                    if recorded and recorded["sha256"] == dict(dataset.digests):
                        infos[name] = dataset.info
                elif is_same(self.meta, f"{DATASETS.kind} {name}"):
                    infos[name] = info(name)
        return infos

    @cached_property
    def labels(self) -> list[int]:
        """[M] L of the services' data sets, which decides bids (eq. 1): of what is in ``datasets``, else as recorded.

        A user's own files may have changed since, or be gone.
        """
        return [self.labels_of(service.dataset) for service in self.scenario.services]

    def labels_of(self, name: str) -> int:
        known: Mapping[str, int] = self.meta["labels"]
        if name not in self.datasets and name not in known:
            raise InputError(f"meta.json: labels: has no {name!r}")
        return self.datasets[name].labels if name in self.datasets else known[name]

    @cached_property
    def tested(self) -> FloatArray:
        """[M] the number of test images behind an accuracy on them; NaN where it is not known."""
        return self._images(lambda known: known.test_size)

    @cached_property
    def measured(self) -> FloatArray:
        """[M] the number of images behind each ``accuracy``: validation images where some are held out."""
        if not self.scenario.split:
            return self.tested
        return self._images(lambda known: held_out(known.train_size, self.scenario.training.validation))

    def _images(self, size: Callable[[DatasetInfo], int]) -> FloatArray:
        """Return [M] how many images of a part of each data set are looked at, if it is known to be the run's."""
        counts = np.full(len(self.scenario.services), np.nan)
        for m, service in enumerate(self.scenario.services if backend_of(self.scenario).trains else ()):
            known = self.datasets.get(service.dataset)
            if known is not None:
                counts[m] = min(self.scenario.training.eval_samples or size(known), size(known))
        return counts


_OF_THE_RUN = (
    "places", "stay", "all_rounds", "starts", "slots", "data", "recorded",
    "other_plugins", "behaviour", "population", "other_fits", "_intervals", "online",
)  # fmt: skip
"""The attributes of ``Logs`` that do not depend on its rounds."""


@dataclass
class Memory:
    """What a block of rounds leaves to the next one, besides rounds.csv, which each of them has whole."""

    clients: Mapping[str, Any] | None = None  # the state of a ``population`` that learns
    federation: Federation | None = None  # where the learning curves have come to; None where that is not known
    # the rules in force, and what clears rounds by them
    clearing: tuple[Market | None, Mechanism | None] = None, None
    contracts: Sequence[Sequence[int]] = ()  # those in force
    ongoing: Sofar | None = None  # the work that goes on, where it outlasts rounds


@dataclass(frozen=True)
class Logs:
    """A run's logs, or a block of rounds of them, and what they should follow from."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records
    numbers: range  # the block's rounds
    last: bool  # whether the run ends with them
    # the tables; money in micro-units, and ``m``, the place of a line's service in the scenario, -1 where it has none
    rounds: pd.DataFrame  # of the whole run
    offers: pd.DataFrame
    events: pd.DataFrame
    clients: pd.DataFrame | None = None  # None where all clients are truthful
    responses: pd.DataFrame | None = None  # None where clients do all of the work
    models: pd.DataFrame | None = None  # None where rounds end with their work
    before: Memory = field(default_factory=Memory)
    after: Memory = field(default_factory=Memory)

    @classmethod
    def read(cls, run: RunDirectory) -> "Logs":
        """Read the logs of a run, whether its policies and mechanism are known here or not."""
        [logs] = cls.blocks(run, None)
        return logs

    @classmethod
    def blocks(cls, run: RunDirectory, lines: int | None) -> Iterator["Logs"]:
        """Read logs in blocks of whole rounds, so many lines of a table at a time; all rules are to see each block."""
        scenario = parse(run.scenario_text(), str(run.path / SCENARIO), catalogue=played())
        first, *others = tables_of(**scenario.logged)
        meta, places = run.meta(), {service.name: m for m, service in enumerate(scenario.services)}

        def placed(table: pd.DataFrame) -> pd.DataFrame:
            return table.assign(m=table["service"].map(places).fillna(-1).astype(np.int64))

        rounds, memory, begin, known = placed(read_table(run, first)), Memory(), 1, dict[str, Any]()
        count = len(rounds) // len(places)
        for last, tables in read_by_rounds(run, others, lines):
            numbers = range(begin, 1 + (count if last is None else min(last, count)))
            frames: dict[str, Any] = {name: placed(table) for name, table in tables.items()}
            logs = cls(scenario, meta, numbers, last is None, rounds, **frames, before=memory)
            vars(logs).update(known)
            yield logs
            memory, begin = logs.after, numbers.stop
            known = {name: of for name, of in vars(logs).items() if name in _OF_THE_RUN}

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
    def stay(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The first and the last round of each service, and when it arrives, in rounds; all [M]."""
        return stay_of(self.scenario, self.seed)

    @cached_property
    def all_rounds(self) -> Rows:
        """The lines of rounds.csv, those of other blocks, too."""
        return Rows.of("rounds", self.rounds)

    @cached_property
    def rows(self) -> Mapping[str, Rows]:
        """The block's lines of the tables as the rules take them, by name."""
        tables = "offers", "events", "clients", "responses", "models"
        frames: dict[str, pd.DataFrame | None] = {name: getattr(self, name) for name in tables}
        block = {name: Rows.of(name, frame) for name, frame in frames.items() if frame is not None}
        return {"rounds": self.all_rounds.where(self.lines), **block}

    @property
    def lines(self) -> slice:
        """Where the lines of the block's rounds are among all of rounds.csv."""
        return slice((self.numbers.start - 1) * len(self.places), (self.numbers.stop - 1) * len(self.places))

    def offers_of(self, number: int, service: str | None = None) -> pd.DataFrame:
        """Return the offers of a round, or those of one service."""
        offers = self.offers.iloc[self.span_of(number)]
        return offers if service is None else offers[offers["service"] == service]

    def turns(self, number: int) -> list[int]:
        """Return the clients of a round in the order in which they come, where they come one after another."""
        now, serves = self.conditions(number), eligibility(self.scenario)
        if serves is None:
            serves = np.ones((len(self.places), self.scenario.clients.count), dtype=np.bool_)
        return turns_of(draw_key(self.seed, "turns"), number, serves, now.offline | now.closed)

    def span_of(self, number: int) -> slice:
        """Return where the offers of a round are in offers.csv, which is in the order of rounds."""
        return slice(*np.searchsorted(self.rows["offers"]["round"], [number, number + 1]).tolist())

    def rounds_of(self, number: int) -> pd.DataFrame:
        """Return the lines of a round in rounds.csv, by service."""
        return self.rounds[self.rounds["round"] == number].set_index("service")

    @cached_property
    def starts(self) -> IntArray:
        """When each round of the run began, by the logs, in microseconds."""
        starts: IntArray = np.concatenate([[0], self.all_rounds["sim_time"][:: len(self.places)][:-1]]).astype(np.int64)
        return starts

    @cached_property
    def slots(self) -> tuple[IntArray, IntArray]:
        """The slot in which each round of the run began, and the last one that was over when it ended.

        They are the numbers of rounds, unless events end rounds, too.
        """
        clock, numbers = self.scenario.timeline, 1 + np.arange(len(self.all_rounds) // len(self.places))
        if not clock.decide:
            return numbers, numbers
        slot = round((clock.slot or 0) * MICRO)
        ends: IntArray = self.all_rounds["sim_time"][:: len(self.places)].astype(np.int64)
        return 1 + self.starts // slot, ends // slot

    def slots_of(self, numbers: int | IntArray) -> IntArray:
        """Return the slots in which rounds began."""
        slots: IntArray = self.slots[0][np.asarray(numbers) - 1]
        return slots

    def order_of(self, rows: Rows) -> IntArray:
        """Return the place among the block's rounds of the round of each row."""
        order: IntArray = rows["round"] - self.numbers.start
        return order

    def places_of(self, rows: Rows) -> IntArray:
        """Return the place among the block's lines of rounds.csv of the round and the service of other rows."""
        places: IntArray = self.order_of(rows) * len(self.places) + rows["m"]
        return places

    @cached_property
    def takes_part(self) -> BoolArray:
        """Whether the service of each line of rounds.csv took part in the round."""
        return np.isin(self.rows["rounds"]["status"], [status for status in Status if status.takes_part])

    def by_round(self, rows: Rows, value: Callable[[RoundConditions], Any]) -> AnyArray:
        """Return for each row something of the conditions of its round."""
        of_rows: AnyArray = np.array([value(self.conditions(number)) for number in self.numbers])[self.order_of(rows)]
        return of_rows

    @cached_property
    def data(self) -> KnownData:
        return KnownData(self.scenario, self.meta)

    @cached_property
    def recorded(self) -> Mapping[str, Any]:
        """What meta.json should record, as far as it follows from the scenario alone."""
        recorded, names = self.meta.get("training"), dict.fromkeys(it.dataset for it in self.scenario.services)
        origins = {name: it.get("from") for name, it in recorded.items()} if isinstance(recorded, dict) else {}
        regimes = {name: asdict(self.scenario.training_for(name)) | {"from": origins.get(name)} for name in names}
        return {"training": regimes, "labels": {name: self.data.labels_of(name) for name in names}}

    @cached_property
    def other_plugins(self) -> list[NamedPlugin]:
        """The behaviours, costs and responses of clients that are plug-ins' and not here, or have changed since."""
        clients = self.scenario.clients
        used = [*clients.behaviours(), *(it.cost.plugin() for _, it in clients.kinds()), *clients.answer()]
        return [it for it in used if not self._is_here(it)]

    def _is_here(self, plugin: NamedPlugin) -> bool:
        registry, name = plugin.registry, plugin.name
        known = registry.is_builtin(name) or registry.find(name) is not None
        return known and is_same(self.meta, f"{registry.kind} {name}")

    @property
    def has_costs(self) -> bool:
        """Whether what work costs the clients is known."""
        return all(it.registry is not COSTS for it in self.other_plugins)

    @property
    def has_response(self) -> bool:
        """Whether the way in which clients respond is known, if they do."""
        return all(it.registry is not RESPONSES for it in self.other_plugins)

    @property
    def _stand_in(self) -> Response | None:
        """A response in place of one that is not here. What it would answer means nothing."""
        return None if self.has_response else MoralHazard()

    @cached_property
    def behaviour(self) -> Behaviour | None:
        """The clients' behaviour; None if it, or a cost of which it makes bids, is one of ``other_plugins``."""
        others = [it for it in self.other_plugins if it.registry is not RESPONSES]
        try:
            return None if others else population_spec(self.scenario, response=self._stand_in).behaviour
        except InputError:
            return None

    def tie_order(self, number: int | IntArray, client: int | IntArray) -> FloatArray:
        """Return the random numbers that break the ties of clients in rounds, as ``des.allocation.allocate`` wants."""
        return tie_order_of(draw_key(self.seed, "ties"), number, len(self.places), client)

    @cached_property
    def population(self) -> Population:
        """The clients, drawn again from the seed; without a ``behaviour``, their bids and reports mean nothing.

        Costs mean nothing, either, unless the logs ``has_costs``.
        """
        require_same_files(self.scenario, self.meta, trace=False)
        cost = None if self.has_costs else Linear(per_sample=0.0)
        spec = population_spec(
            self.scenario, behaviour=self.behaviour or Truthful(), cost=cost, response=self._stand_in
        )
        try:
            dqi = [self.dqi_parameters(service.dataset) for service in self.scenario.services]
            return Population(spec, self.data.labels, dqi, self.seed)
        except (ValueError, BehaviourError, CostError) as error:  # a scenario that no run has played
            raise InputError(f"scenario.toml: clients: {error}") from error

    def worlds(self) -> Iterator[tuple[int, Qualities]]:
        """Yield each round's world as services saw it, in order; clients learn again from what they were paid."""
        self.population.reset()
        if self.before.clients is not None:
            self.population.restore(self.before.clients)
        try:
            for number in self.numbers:
                yield number, self.population.draw(int(self.slots_of(number)))
                if self.population.learns:
                    rows = self.rows["offers"].where(self.span_of(number))
                    paid = [None if amount != amount else int(amount) for amount in rows["paid"].tolist()]
                    offers = zip(rows["service"].tolist(), rows["client"].tolist(), paid, strict=True)
                    self.population.close(number, offers, list(self.places))
            if self.population.learns and not self.last:
                self.after.clients = self.population.state()
        except (BehaviourError, CostError) as error:
            raise InputError(str(error)) from error

    def world(self, number: int) -> Qualities:
        """Return the world of a round that was played."""
        return next(world for at, world in self.worlds() if at == number)

    @cached_property
    def drawn(self) -> tuple[Mapping[str, AnyArray], MicroArray]:
        """The draws of the run's seed: for each offer, by column, and the lowest bid of each line of rounds.csv.

        ``held_data_size``, ``held_emd`` and ``cost`` are the truth, whatever clients report.
        """
        offers, parts, lowest = self.rows["offers"], [], []
        for number, world in self.worlds():
            span, held = self.span_of(number), world.held
            columns = {
                "data_size": world.data_size, "emd": world.emd, "dqi": world.dqi, "bid": world.bid,
                "held_data_size": held.data_size, "held_emd": held.emd, "cost": held.cost,
            }  # fmt: skip
            parts.append({name: of[offers["m"][span], offers["client"][span]] for name, of in columns.items()})
            lowest.append(world.bid.min(axis=1))
        drawn = {name: np.concatenate([of[name] for of in parts]) for name in parts[0]}
        return drawn, np.concatenate(lowest)

    @property
    def held_sizes(self) -> IntArray:
        """The images that the client of each offer holds, whatever it reports."""
        sizes: IntArray = self.rows["offers"]["data_size"] if self.clients is None else self.drawn[0]["held_data_size"]
        return sizes

    def dqi_parameters(self, dataset: str) -> DQIParameters:
        """Return the parameters of eq. (6) that the run had for a data set."""
        if self.scenario.dqi in PRINTED:
            return PRINTED[self.scenario.dqi]
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
        accuracy = np.full((len(self.numbers), len(self.places)), np.nan)
        if self.ongoing is not None:
            return np.array(self.ongoing.accuracy).ravel()
        if self._unfollowed:
            return accuracy.ravel()
        federation = self.before.federation if self.numbers.start > 1 else self._curves
        for number in self.numbers:
            if federation is None:
                break
            offers = self.rows["offers"].where(self.span_of(number))
            try:
                served = offers.where(offers["outcome"] == Outcome.SERVED)
                federation.train_round(number, self.jobs(number, served))
            except (LookupError, ValueError, ArithmeticError):  # no data size or EMD of this scenario
                federation = None
            else:
                accuracy[number - self.numbers.start] = [federation.accuracy(name) for name in self.places]
        self.after.federation = federation
        return accuracy.ravel()

    @property
    def _curves(self) -> Federation | None:
        """The learning curves at their start; None where they are not the run's, or models are trained."""
        known = not self.other_fits and all(it.dataset in self.data.datasets for it in self.scenario.services)
        if not known or backend_of(self.scenario).trains:
            return None
        return build_federation(self.scenario, self.seed, Shelf())

    @cached_property
    def ongoing(self) -> Followed | None:
        """The work that outlasts rounds, followed again; None where none does, or where a rule of it is not here."""
        if not self._outlasts or self._trace_is_gone or not all(map(self._is_here, self.scenario.triggers())):
            return None
        try:
            triggers = [it.create() for it in self.scenario.triggers()]
            rules = {number: at(self.scenario, number).market for number in self.numbers}
            mechanisms = {number: MECHANISMS.create(it.mechanism, **it.options) for number, it in rules.items()}
        except InputError:
            return None
        count, sofar = len(self.places), self.before.ongoing
        if sofar is None:
            sofar = Sofar(0, [0] * count, [[] for _ in range(count)], federation=cast("Any", self._curves))
        try:
            found, self.after.ongoing = follow(self, sofar, triggers, mechanisms)
        except ClearingError as error:
            raise InputError(str(error)) from error
        return found

    def round_view(self, number: int, world: Qualities, wanting: IntArray) -> RoundView:
        """Return a round as mechanisms see it, given the services of its offers that stand; budgets are left out."""
        services, shape = self.scenario.services, world.bid.shape
        able = eligibility(self.scenario)
        return RoundView(
            number,
            self.scenario.rounds,
            world.data_size,
            world.emd,
            world.seen,
            read_only(self.accuracies_after(number - 1)),
            read_only(np.array([it.target_accuracy for it in services])),
            read_only(np.full(len(services), np.inf)),
            None,
            read_only(self.stay[2]),
            read_only(np.array([np.count_nonzero(wanting == m) for m in range(len(services))])),
            read_only(np.ones(shape, dtype=np.bool_) if able is None else able),
        )

    @property
    def _outlasts(self) -> bool:
        return bool(self.scenario.triggers())

    @property
    def unasked(self) -> Collection[str]:
        """The rules that are not asked, by name: those of rounds that end with their work, where they do not."""
        return ("cores", "timeline") if self._outlasts else ()

    @property
    def _unfollowed(self) -> bool:
        """Whether work outlasts rounds, but cannot be followed."""
        return self._outlasts and self.ongoing is None

    @cached_property
    def renewed(self) -> BoolArray:
        """Whether the service of each line of rounds.csv can have made a new model in the round."""
        if self.ongoing is not None:
            return np.array(self.ongoing.renewed).ravel()
        trained: BoolArray = self.rows["rounds"]["served"] > 0
        return trained | self._unfollowed

    @cached_property
    def other_fits(self) -> Mapping[str, Fit | None]:
        """The fits here, by name, that meta.json records otherwise; None where there is none here."""
        try:
            here = {f"{fit.kind}/{fit.dataset}": fit for fit in fits_of(self.scenario)}
        except FitError:
            here = {}
        recorded = self.meta["fits"]
        return {
            key: here.get(key)
            for key in sorted({*here, *recorded})
            if key not in here or recorded.get(key) != dict(here[key].parameters)
        }

    def unknown(self) -> Iterator[str]:
        """Yield in words what is not derived again, as something that it follows from is not here."""
        if "hashed" not in self.meta:
            yield "that scenario.toml is that of the run's hash, as an earlier version did not record what this is of"
        if not self.has_response:
            named = " or ".join(f"{it.name!r}" for it in self.scenario.clients.answer())
            yield f"what clients answer to awards, as response {named} is not here, or is another one: load its file"
        if self._unfollowed:
            what = "which work goes on when, and what follows from it (models, accuracies on curves, saved budgets)"
            yield f"{what}, as a trigger or the mechanism is not here, or is another one: load its file"
        if self.behaviour is None:
            others = self.other_plugins or self.scenario.clients.behaviours()
            named = " or ".join(sorted({f"{it.registry.kind} {it.name!r}" for it in others}))
            yield f"data sizes, EMDs, DQI and bids, as {named} is not here, or is another one: load its file"
        if self.other_fits:
            yield f"DQI and accuracies against the fits of {', '.join(self.other_fits)}, as those here are others"
        exact = self.exact_accuracy.reshape(-1, len(self.places))
        if not self._unfollowed and (
            names := [name for name, place in self.places.items() if np.isnan(exact[:, place]).any()]
        ):
            yield (
                f"accuracies and rewards of {', '.join(names)} beyond six decimals, as the data set, or the learning "
                "curve, of the run is not here"
            )
        if self._trace_is_gone:
            yield "which clients are there, as the trace of the run is not here"

    @cached_property
    def exact_accuracy(self) -> FloatArray:
        """The accuracy behind the six decimals of each line of rounds.csv; NaN where nothing tells it."""
        images = np.tile(self.data.measured, len(self.numbers))
        return np.where(
            np.isnan(self.learned), np.rint(self.rows["rounds"]["accuracy"] * images) / images, self.learned
        )

    @cached_property
    def answered(self) -> Rows:
        """The offers, with what was ``promised`` and ``done`` of each, in millionths; all of it where none responds."""
        offers, answers = self.rows["offers"], self.rows.get("responses")
        columns = {name: np.full(len(offers), MICRO) for name in ("promised", "done")}
        awarded = np.flatnonzero(offers["outcome"] != Outcome.OUTBID)
        for name, column in columns.items():
            if answers is not None:
                column[awarded] = answers[name]
        return offers.having(**columns)

    def jobs(self, number: int, offers: Rows | pd.DataFrame) -> list[TrainingJob]:
        """Return what the clients of a round's offers trained on, service by service, in the order of offers."""
        jobs, terms = self._whole(number, offers), self.population.spec.response
        if terms is None:
            return jobs
        rows, epochs = self.answered.where(self.span_of(number)), self.scenario.training_for
        columns = (rows[name].tolist() for name in ("service", "client", "promised", "done"))
        parts = {(service, client): each for service, client, *each in zip(*columns, strict=True)}
        sizes = dict(
            zip(zip(offers["service"], offers["client"], strict=True), offers["data_size"].tolist(), strict=True)
        )
        done = []
        for job in jobs:
            (promised, part), size = parts[job.service, job.client], sizes[job.service, job.client]
            dataset = self.scenario.service(job.service).dataset
            done += terms.training([job], [terms.images(size, promised)], [part], epochs(dataset).local_epochs)
        return done

    def _whole(self, number: int, offers: Rows | pd.DataFrame) -> list[TrainingJob]:
        """Return all of the work of offers."""
        lies, clients = self.behaviour is None or self.behaviour.misreports, self.scenario.clients
        columns = [offers[name].tolist() for name in ("service", "client", "data_size", "emd")]
        fresh = not clients.lasting.persistence and clients.label_mix.dirichlet is None and not self.scenario.data.given
        if not lies and fresh and not any(group.conduct for group in clients.groups):
            return [TrainingJob(*values) for values in zip(*columns, strict=True)]
        held, jobs = self.population.held(int(self.slots_of(number))), []
        for name in dict.fromkeys(columns[0]):
            pairs = [(client, size) for service, client, size, _ in zip(*columns, strict=True) if service == name]
            claimed = [size for _, size in pairs] if lies else None
            jobs += held.jobs(name, self.places[name], [client for client, _ in pairs], claimed)
        return jobs

    def accuracies_after(self, number: int) -> FloatArray:
        """Return [M] the accuracies in rounds.csv after a round; 0 before the first one, of which it says nothing."""
        if not number:
            return np.zeros(len(self.places))
        accuracy: FloatArray = self.all_rounds["accuracy"].reshape(-1, len(self.places))[number - 1]
        return accuracy

    def conditions(self, number: int) -> RoundConditions:
        """Return what a round is played under, after the interventions and the spending up to it."""
        return self._followed[0][number - self.numbers.start]

    @property
    def hired(self) -> Hired:
        return self._followed[1]

    def made_in(self, number: int) -> Rows:
        """Return the offers that were made in a round: all but those of contracts."""
        span = self.span_of(number)
        return self.answered.where(span.start + np.flatnonzero(~self.hired.rows[span]))

    @cached_property
    def _followed(self) -> tuple[list[RoundConditions], Hired]:
        """The conditions of the block's rounds, and what contracts come to in them."""
        names, spent = list(self.places), self.all_rounds["spent"].reshape(-1, len(self.places))
        sums = (spent.cumsum(axis=0) - spent)[self.numbers.start - 1 : self.numbers.stop - 1]
        contracts, count = Contracts(contract_terms(self.scenario), self.scenario.rounds), len(self.rows["offers"])
        contracts.restore(self.before.contracts)
        hired, found = Hired(np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=np.bool_)), []
        for number, before in zip(self.numbers, sums.tolist(), strict=True):
            if self.ongoing is not None:
                # what is held for work that goes on cannot be spent, though it will not be delivered
                held = self.ongoing.lost[number - self.numbers.start]
                before = [spent + lost for spent, lost in zip(before, held, strict=True)]
            sofar = dict(zip(names, before, strict=True))
            saved = dict(zip(names, self._saved(number), strict=True))
            stay, two = self.stay[0].tolist(), slice(max(0, number - 2), number)
            slots, starts = ([0, *of[two].tolist()][-2:] for of in (self.slots[0], self.starts))
            now = conditions(self.scenario, number, sofar, contracts, saved, stay, slots, starts, self._intervals)
            if self._unfollowed:
                now = self._with_logged_budgets(now, number)
            found.append(now)
            if contracts.terms.rounds > 1:
                self._follow(number, contracts, found[-1].contracts, hired)
        self.after.contracts = contracts.state()
        return found, hired

    def _with_logged_budgets(self, now: RoundConditions, number: int) -> RoundConditions:
        """Return conditions with the budgets of the logs where these follow from work that cannot be followed."""
        logged = self.rounds_of(number)["budget"]
        saving = bool(self.scenario.timeline.decide)
        following = {
            it.name for it in self.scenario.services if saving or (it.budget_cap, it.total_budget) != (None, None)
        }
        budgets = {name: int(logged[name]) if name in following else of for name, of in now.budgets.items()}
        return now._replace(budgets=budgets, free=budgets)

    def _saved(self, number: int) -> list[int]:
        """Return what each service had left when the round before another ended, by the logs; 0 once it has left."""
        if number == 1:
            return [0] * len(self.places)
        count = len(self.places)
        last = self.all_rounds.where(slice((number - 2) * count, (number - 1) * count))
        left: IntArray = last["budget"] - last["spent"]
        if self.ongoing is not None:
            left = last["budget"] + np.array(self.ongoing.kept[number - self.numbers.start])
        left[~np.isin(last["status"], [Status.TRAINING])] = 0
        amounts: list[int] = left.tolist()
        return amounts

    def _follow(self, number: int, contracts: Contracts, due: Sequence[Contract], hired: Hired) -> None:
        """Note what contracts come to in a round, and let them be those of the next one."""
        span, first = self.span_of(number), (number - self.numbers.start) * len(self.places)
        rows, waiting = self.rows["offers"].where(span), {(it.service, it.client): it for it in due}
        free = contracts.open_clients(None, (len(self.places), self.scenario.clients.count))
        columns = (rows[name].tolist() for name in ("m", "client", "core", "paid"))
        for place, (m, client, core, paid) in enumerate(zip(*columns, strict=True), start=span.start):
            if (contract := waiting.pop((m, client), None)) is not None:
                hired.price[place], hired.core[place] = contract.price, contract.core
            elif free is not None and not free[m, client]:
                hired.taken[place] = True
            elif core == core and paid == paid:
                contracts.sign(number, m, [(client, int(core), int(paid))])
        hired.missing.extend((number, it) for it in waiting.values())
        status = self.rows["rounds"]["status"][first : first + len(self.places)]
        for m in np.flatnonzero(np.isin(status, [it for it in Status if it.leaves])).tolist():
            hired.fees.extend((first + m, *of) for of in contracts.cancel(number, m))
        contracts.end_round(number)

    @property
    def _trace_is_gone(self) -> bool:
        return self._intervals is None and self.scenario.clients.availability is not None

    @cached_property
    def online(self) -> Mapping[int, list[tuple[int, int]]] | None:
        """When clients come and go, microseconds, by client; None where they are there for whole rounds."""
        if self._intervals is None or not self._intervals.instants:
            return None
        found: dict[int, list[tuple[int, int]]] = {client: [] for client in range(self.scenario.clients.count)}
        for client, begin, end in self._intervals.rows.tolist():
            found[client].append((begin, end))
        return found

    @cached_property
    def _intervals(self) -> Intervals | None:
        """The intervals in which clients are there; None if they always are, or if the trace is gone or has changed."""
        try:
            trace, intervals = trace_of(self.scenario), intervals_of(self.scenario, self.seed)
        except InputError:
            return None
        recorded = self.meta.get("availability", {}).get("sha256")
        return intervals if trace is None or trace.sha256 == recorded else None
