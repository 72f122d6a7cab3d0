"""The clients as a population: the data they hold in each round, its quality, and their bids.

Data and costs are functions of (seed, round, service, client) alone: no policy can change the data that the others
meet, services that have left are drawn like the rest, and clients or services added at the end change no others.
Reports and bids follow by the clients' behaviour and, where clients learn, from the outcomes of earlier bids.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from des.behaviour import BehaviourError, Outcomes, Setting, bids_of, liars_of
from des.behaviours.truthful import Truthful
from des.clients.data_sources import Choices, DataSource, Holdings, data_source
from des.clients.data_tables import DataSets, DataTables, PopulationSpec, Ranges, Valuation
from des.clients.disclosure import CostNoise, DQIView
from des.cost import costs, require_not_negative
from des.mechanism import Menu
from des.money import MICRO, Micro, MicroArray
from des.response import Answers, Awards, Terms
from fl.arithmetic.draws import draw_key, integers, uniforms
from fl.arrays import BoolArray, FloatArray, IntArray, read_only
from fl.data.dqi import DQIParameters
from fl.training.jobs import Conduct, TrainingJob
from flmarket.core.plugin_errors import plugin_state


@dataclass(frozen=True)
class Held(DataSets):
    """The data that clients hold in a round, read-only: arrays [M, C] over services and clients."""

    cost: MicroArray  # what training on them costs the client, in micro-units
    source: DataSource
    round: int  # n
    conducts: Sequence[Conduct | None] | None = None  # of each client; None if all work honestly

    def jobs(
        self,
        service: str,
        m: int,  # its index
        clients: Sequence[int],  # indices of the clients
        claimed: Sequence[int] | None = None,  # the images that each reports; None where that is the truth
    ) -> list[TrainingJob]:
        """Return the jobs of clients that train on what they hold, in their order."""
        at = self.at[m].take(clients)
        sizes, emds = self.table.size.take(at).tolist(), self.table.emd.take(at).tolist()
        origins = self.source.origins(self.round, m, clients)
        names, reported, own = repeat(service), claimed or repeat(None), self.conducts
        conducts = repeat(None) if own is None else [own[client] for client in clients]
        columns = zip(names, clients, sizes, emds, reported, *origins, conducts, strict=False)
        return list(map(TrainingJob._make, columns))


@dataclass(frozen=True)
class Qualities(DataSets):
    """One round's world as clients report it, read-only: arrays [M, C] over services and clients."""

    bid: MicroArray  # O, in micro-units
    held: Held  # the truth, which services do not see
    seen: FloatArray  # what services see in place of the DQI; the same, unless the market discloses less
    serves: BoolArray | None = None  # whether a client can serve a service at all; None if all can serve all


def public_ranges(spec: PopulationSpec, labels: int, parameters: DQIParameters) -> Ranges:
    """Return what clients' data can cost, and be worth to one service as it sees it, whatever clients report or ask."""
    ranges = Valuation(replace(spec, behaviour=Truthful()), [labels], [parameters]).ranges()
    return replace(ranges, dqi=DQIView(spec.disclosure, *ranges.dqi, spec.count, seed=0).range)


def _once(
    spec: PopulationSpec,
    purpose: str,  # of the random stream
    sets: Sequence[tuple[float, ...]],  # what clients of each group have one of for the whole run; all empty, or none
    seed: int,
) -> tuple[FloatArray, Choices, IntArray]:
    """Return all numbers, the choice that each client has of them, and the place of the one that it draws [C]."""
    choices = Choices.of(spec.counts, [len(each) for each in sets])
    if not choices.total:
        return np.empty(0), choices, choices.first
    draw = integers(draw_key(seed, "speed" if spec.devices else purpose), choices.count, 0, 0, np.arange(spec.count))
    return np.array([number for each in sets for number in each], dtype=np.float64), choices, choices.first + draw


class Population:
    """Draws the world of each round."""

    def __init__(
        self,
        spec: PopulationSpec,  # the clients; their behaviour begins again
        labels: Sequence[int],  # [M] L of each service's data set
        parameters: Sequence[DQIParameters],  # [M] DQI parameters of each service's data set
        seed: int,  # the run's seed
    ) -> None:
        """Tabulate the quality and the cost of every (D, EMD) pair for every service, or draw them in each round."""
        self.spec = spec
        self._departure = draw_key(seed, "departure")
        self._departing = lru_cache(maxsize=2)(self._draw_departures)
        valuation, groups, counts = Valuation(spec, labels, parameters), spec.groups, spec.counts
        # of each client: the pairs that it draws from, and its speeds
        self.pair_choices = Choices.of(
            counts, [len(group.data_sizes) * (len(group.emds) if spec.listed else 1) for group in groups]
        )
        holdings = Holdings(len(labels), self.pair_choices, spec.lasting, seed)
        self._source = data_source(spec, labels, holdings, valuation, seed)
        self._ranges = self._source.ranges
        self._costs_differ = spec.costs_differ
        self._cost_noise = CostNoise(spec.cost_noise, spec.count, seed)
        self._cost_range = self._cost_noise.limits(*self._ranges.cost)
        self._dqi_view = DQIView(spec.disclosure, *self._ranges.dqi, spec.count, seed)
        self._setting = Setting(seed, len(labels), spec.count, spec.cores, read_only(self._cost_range[1]))
        self.reset()
        self.speeds, self.speed_choices, self.speed_of = _once(spec, "speed", [group.speeds for group in groups], seed)
        downloads, _, download_of = _once(spec, "download", [group.downloads for group in groups], seed)
        uploads, _, upload_of = _once(spec, "upload", [group.uploads for group in groups], seed)
        # [C] Mbps of each client's links; None where models travel as long as the timeline says
        self.download: FloatArray | None = downloads[download_of] if len(downloads) else None
        self.upload: FloatArray | None = uploads[upload_of] if len(uploads) else None
        conducts = [group.conduct for group in groups for _ in range(group.count)]
        self._conducts = conducts if any(conducts) else None
        # [C] the probability that each client leaves in the middle of a round in which it was awarded a job
        self.departure_rate: FloatArray = np.repeat([group.departure_rate for group in groups], counts)

    def reset(self) -> None:
        """Let the clients forget what they have learned, as before the first round."""
        self.spec.behaviour.begin(self._setting)

    @property
    def pairs(self) -> DataTables:
        """The pairs that ``draw_pairs`` draws from, where sizes and EMDs are listed."""
        return self._source.in_round(1).table

    def draw(self, round_: int) -> Qualities:
        """Return the data, DQI and bids of all clients for all services in a round.

        Where clients learn, bids follow from the rounds that were closed so far.
        """
        held = self.held(round_)
        at, costs = held.at, held.cost
        if (liars := liars_of(self.spec.behaviour, round_, self.spec.count)) is not None:
            at = at + liars * held.table.size[0].size
            costs = self._costs(round_, held.table, at, claimed=True)
        bids = bids_of(self.spec.behaviour, round_, costs)
        bids.setflags(write=False)
        seen = self._dqi_view.seen(DataSets(held.table, at).dqi, round_)
        return Qualities(held.table, at, bids, held, seen, self.spec.serves)

    def held(self, round_: int) -> Held:
        """Return what data clients hold in a round, whatever they say of it."""
        data = self._source.in_round(round_)
        return Held(data.table, data.at, self._costs(round_, data.table, data.at), self._source, round_, self._conducts)

    def _costs(self, round_: int, table: DataTables, at: IntArray, *, claimed: bool = False) -> MicroArray:
        if self._costs_differ:
            amounts = self._own_costs(table.size.take(at), table.emd.take(at), claimed=claimed)
        else:
            amounts = table.cost.take(at)
        amounts = self._cost_noise.noisy_costs(amounts, round_)
        amounts.setflags(write=False)
        return amounts

    def _own_costs(self, size: IntArray, emd: FloatArray, *, claimed: bool) -> MicroArray:
        """Return the costs [M, C] of data where they depend on who the client is, too.

        What is ``claimed`` costs nothing at least, as in ``DataTables``; what is held may not cost less.
        """
        result, begin = np.empty(size.shape, dtype=np.int64), 0
        for group in self.spec.groups:
            own = slice(begin, begin := begin + group.count)
            each = size[:, own], emd[:, own], self.speed[own], self.types[:, own]
            amounts = costs(group.cost, *each)
            if not claimed:
                require_not_negative(group.cost, amounts, *each[:2])
            result[:, own] = amounts
        return np.maximum(result, 0) if claimed else result

    def answers(
        self,
        terms: Terms,
        held: Held,
        places: tuple[IntArray, IntArray],  # [awards] the service and the client of each
        prices: MicroArray,  # [awards] what all of the work is paid, micro-units
        menu: Menu | None,
    ) -> Answers:
        """Return what clients answer to awards. Errors as in ``Terms.answers``."""
        services, clients = map(read_only, places)
        data = held.some(services, clients)
        price, cost = read_only(prices / MICRO), read_only(held.cost[places] / MICRO)
        unit = read_only(self.types[places])
        awards = Awards(held.round, services, clients, price, cost, data.data_size, data.emd, unit, menu)
        return terms.answers(awards, prices)

    def close(
        self,
        round_: int,  # n; every round is closed once, in order
        # service, client, and what it was paid, None if it did not serve; in the order of offers.csv
        offers: Iterable[tuple[str, int, Micro | None]],
        names: Sequence[str],  # of the services
    ) -> None:
        if self.learns:
            self.spec.behaviour.close(round_, Outcomes.of(offers, names, self.held(round_).cost))

    @property
    def truthful(self) -> bool:
        """Whether clients bid their costs, report what they hold and do all of the work, as in the paper."""
        # a class of a plug-in may only begin as Truthful does
        return type(self.spec.behaviour) is Truthful and self.spec.response is None

    @property
    def learns(self) -> bool:
        return self.spec.behaviour.learns

    def state(self) -> dict[str, Any]:
        return plugin_state(self.spec.behaviour, "behaviour", BehaviourError)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state``. Errors as there."""
        self.spec.behaviour.restore(state)

    @cached_property
    def types(self) -> FloatArray:
        """What each client draws once for the run, [M, C]; see ``des.cost``."""
        services, first = len(self._ranges.dqi[0]), np.cumsum([0, *self.spec.counts])
        key = draw_key(self._setting.seed, "type")
        drawn = [
            np.broadcast_to(group.unit.draw(key, services, np.arange(*ends)), (services, group.count))
            for group, ends in zip(self.spec.groups, pairwise(first.tolist()), strict=True)
        ]
        return read_only(np.concatenate(drawn, axis=1))

    @property
    def speed(self) -> FloatArray:
        """The speed of each client, [C]."""
        return self.speeds[self.speed_of]

    @property
    def data_sizes(self) -> Collection[int]:
        return self._ranges.data_sizes

    def _draw_departures(self, round_: int) -> FloatArray:
        """Return [2, C]: a client leaves if its first number is below the rate; the second says when."""
        return uniforms(self._departure, round_, 0, np.arange(self.spec.count))

    @property
    def seen_range(self) -> tuple[FloatArray, FloatArray]:
        """The lowest [M] and the highest [M] value that a service can see in place of a client's DQI."""
        return self._dqi_view.range

    @property
    def bid_range(self) -> tuple[MicroArray, MicroArray]:
        """The lowest [M] and the highest [M] bid that a client can make to each service, micro-units."""
        return self.spec.behaviour.bid_range(*map(read_only, self._cost_range))

    def departs(self, round_: int, client: int) -> float | None:
        """Return the part of its work after which a client leaves in this round, in [0, 1); None if it stays."""
        if not (rate := self.departure_rate[client]):
            return None
        leaves, part = self._departing(round_)[:, client].tolist()
        return part if leaves < rate else None
