"""The markets in lockstep as arrays, padded to the largest market: what no seed changes, and the worlds drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from des.clients.data_sources import draw_pairs
from des.clients.disclosure import Disclosure
from des.clock import NEVER
from des.market import Market
from des.money import MicroArray
from des.service import ServiceSpec
from fl.arithmetic.draws import draw_key
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray
from fl.surrogate.learning_curves import Curve, SurrogateFederation
from flmarket.core.errors import InputError
from learning.seats import MarketFactory

ENDLESS = 2**62  # in the place of a budget for the whole run, where there is none; micro-units

TRAINS = 'a market that trains models cannot be played in lockstep; use training.backend = "surrogate"'


class LockstepError(InputError):
    """A market cannot be played in lockstep, or a round is closed that is not open; says why."""


class MarketKinds:
    """B markets of T kinds. Indices: b markets, m services, c clients."""

    def __init__(self, factories: Sequence[MarketFactory], of: Sequence[int]) -> None:
        self._factories = tuple(factories)
        markets = [make(0) for make in factories]
        self.curves = [curves_of(market) for market in markets]  # [T] the learning curves of its services, by name
        self.markets = tuple(markets)  # [T] one market of each kind, with seed 0, never played
        self.of = np.array(of, dtype=np.int64)  # [B] the kind of each market
        self.each = tuple(self.markets[kind] for kind in of)  # [B] the one of each market's kind
        self.services = max(len(market.services) for market in markets)
        self.clients = max(market.population.spec.count for market in markets)
        self.rounds: IntArray = np.array([market.rounds for market in markets])[self.of]  # [B] N
        self.exists: BoolArray = self._of_specs(lambda _: True, absent=False)  # [B, M] whether it has the service
        counts = np.array([market.population.spec.count for market in markets])[self.of]
        self.there: BoolArray = np.arange(self.clients) < counts[:, None]  # [B, C] whether it has the client
        self.target: FloatArray = self._of_specs(lambda spec: spec.target_accuracy, absent=1.0)  # [B, M]
        self.base: FloatArray = self._of_specs(lambda spec: spec.reward_base, absent=1.0)  # [B, M] Omega
        self.epochs: IntArray = self._of_specs(lambda spec: spec.local_epochs, absent=1)  # [B, M]
        self.arrival: IntArray = self._of_specs(lambda spec: spec.arrival, absent=1)  # [B, M] its first round
        self.total: MicroArray = self._of_specs(  # [B, M] the budget for the whole run, micro-units
            lambda spec: ENDLESS if spec.total_budget is None else spec.total_budget, absent=ENDLESS
        )
        self._tabulate_conditions()

    def __reduce__(self) -> tuple[Any, ...]:
        return MarketKinds, (self._factories, self.of.tolist())  # markets cannot be copied

    def per_service(
        self,
        rows: Sequence[Sequence[Any]],  # [T] a value of each service of a kind
        absent: float,  # the value of services that a smaller market lacks
    ) -> Any:
        """Return values of the services of all markets, [B, M]."""
        return np.array([[*row, *[absent] * (self.services - len(row))] for row in rows])[self.of]

    def per_client(
        self,
        rows: Sequence[AnyArray],  # [T] a value of each client of a kind
        absent: float,  # the value of clients that a smaller market lacks
    ) -> Any:
        """Return values of the clients of all markets, [B, C]."""
        return np.array([np.pad(row, (0, self.clients - len(row)), constant_values=absent) for row in rows])[self.of]

    def _of_specs(self, value: Callable[[ServiceSpec], Any], absent: float) -> Any:
        return self.per_service([[value(spec) for spec in market.services] for market in self.markets], absent)

    def _tabulate_conditions(self) -> None:
        kinds, last = len(self.markets), int(self.rounds.max())
        self._budgets = np.zeros((kinds, last + 2, self.services), dtype=np.int64)
        self._cores = np.ones((kinds, last + 2), dtype=np.int64)
        self._offline = np.zeros((kinds, last + 2, self.clients), dtype=np.bool_)
        for kind, market in enumerate(self.markets):
            names = [spec.name for spec in market.services]
            for number in range(1, market.rounds + 2):  # what follows the last round is observed, too
                now = market.schedule.at(number)
                self._budgets[kind, number, : len(names)] = [now.budgets[name] for name in names]
                self._cores[kind, number] = now.cores
                self._offline[kind, number, list(now.offline)] = True
        self._anyone_offline = bool(self._offline.any())

    def budgets(self, number: IntArray) -> MicroArray:
        """Return B_m [B, M] of round ``number[b]``, micro-units."""
        return self._budgets[self.of, number]

    def cores(self, number: IntArray) -> IntArray:
        """Return K [B]."""
        return self._cores[self.of, number]

    def online(self, number: IntArray) -> BoolArray:
        """Return who can be selected, [B, C]."""
        return self.there & ~self._offline[self.of, number] if self._anyone_offline else self.there


def curves_of(market: Market) -> Mapping[str, Curve]:
    """Return the learning curves of a market's services, or refuse a market that cannot be played in lockstep."""
    federation, spec, schedule = market.federation, market.population.spec, market.schedule
    if not isinstance(federation, SurrogateFederation):
        raise LockstepError(TRAINS)
    mechanism, behaviour = type(market.mechanism), type(spec.behaviour)
    for refused, why in (
        (not mechanism.by_client, f"does not clear client by client (mechanism {mechanism.__name__})"),
        (market.mechanism.settles, f"sets prices after delivery (mechanism {mechanism.__name__})"),
        (
            any(change.rules is not None for change in schedule.changes),
            "changes its mechanism in the middle of the run",
        ),
        (spec.response is not None, "has clients that respond to awards (clients.response)"),
        (not market.population.truthful, f"has clients that need not tell the truth (behaviour {behaviour.__name__})"),
        (bool(market.ledger.saving), "lets services save (services.budget_cap)"),
        (any(spec.last is not None for spec in market.services), "has services that give up (services.patience)"),
        (bool(market.outlasting), market.outlasting),
        (market.sequential, "offers its clients one after another (market.impressions)"),
        (spec.serves is not None, "has clients that cannot serve every service (clients.groups, services)"),
        (
            any(schedule.at(round_).cores_of is not None for round_ in schedule.turning_points),
            "has clients with fewer cores than others (clients.groups, cores)",
        ),
        (
            market.timeline.patience < NEVER
            and (market.timeline.jitter > 0 or any(group.downloads or group.uploads for group in spec.groups)),
            "has a slot or a deadline, and jobs whose times vary (timeline.jitter, clients.upload_mbps)",
        ),
        (spec.lasting.persistence > 0, "has data that lasts from round to round (clients.lasting)"),
        (spec.mixed, "draws label mixes (clients.label_mix)"),
        (spec.partitions is not None, "has clients that own their images (data.partition)"),
        (spec.costs_differ, "has clients whose costs differ for equal data (clients.cost.unit, or its kind and speed)"),
        (spec.cost_noise > 0, "has noise in its clients' costs (clients.cost.noise)"),
        (spec.disclosure.public_data, "shows services the clients' data (market.data)"),
        (spec.disclosure != Disclosure(), "hides bids or DQI from services (market.bids, dqi and dqi_noise)"),
    ):
        if refused:
            raise LockstepError(f"a market that {why} cannot be played in lockstep")
    return federation.curves


class Pairs(NamedTuple):
    """All (D, EMD) pairs that a client can hold, for all services of all kinds of markets, one after another."""

    size: IntArray  # D, images
    emd: FloatArray  # eq. 1
    dqi: FloatArray  # Psi, eq. 6
    bid: MicroArray  # micro-units


@dataclass(frozen=True, slots=True)
class LockstepWorld:
    pairs: Pairs
    at: IntArray  # [B, M, C] which pair each client holds; where a smaller market has no such client, any

    @property
    def dqi(self) -> FloatArray:
        """Psi (eq. 6) of each client's data for each service, [B, M, C]."""
        return self.pairs.dqi.take(self.at)

    @property
    def bid(self) -> MicroArray:
        """Bids [B, M, C], micro-units."""
        return self.pairs.bid.take(self.at)


class Worlds:
    """Draws the rounds of all markets."""

    def __init__(self, kinds: MarketKinds) -> None:
        pairs = [market.population.pairs for market in kinds.markets]
        columns = ([getattr(part, name).ravel() for part in pairs] for name in ("size", "emd", "dqi", "cost"))
        self.pairs = Pairs(*map(np.concatenate, columns))
        self._services, self._clients = np.arange(kinds.services), kinds.clients
        count, each = np.array([part.cost[0].shape for part in pairs])[kinds.of].T  # [B] services, and pairs of each
        first = np.cumsum([0, *(part.cost.size for part in pairs[:-1])])[kinds.of]  # [B] where a kind's pairs begin
        row = np.minimum(self._services, count[:, None] - 1)  # of a service that is not there, those of the last one
        choices = [market.population.pair_choices for market in kinds.markets]
        begin = kinds.per_client([pair.first for pair in choices], absent=0)[:, None]  # [B, 1, C] in a service's row
        self._first = (first[:, None] + each[:, None] * row)[..., None] + begin  # [B, M, C]
        self._each = kinds.per_client([pair.count for pair in choices], absent=1)[:, None]  # [B, 1, C]
        self._keys = np.zeros((len(kinds.of), 2), dtype=np.uint32)

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds."""
        self._keys[list(which)] = draw_key(seeds, "quality")

    def draw(self, rounds: IntArray) -> LockstepWorld:
        """Return the world of round ``rounds[b]`` in each market ``b``."""
        at = draw_pairs(self._keys, rounds, len(self._services), self._clients, self._each)
        at += self._first
        return LockstepWorld(self.pairs, at)
