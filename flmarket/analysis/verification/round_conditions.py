"""The rounds of a run as ``flmarket verify`` has them: what each is played under, and what contracts come to in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from des.contracts import Contract, Contracts, total_of
from des.mechanism import DEFAULT, known
from des.money import MICRO, Micro, to_micro
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import log
from fl.arrays import BoolArray, FloatArray, IntArray
from scenarios.build import cores_of
from scenarios.file.client_files import Intervals
from scenarios.file.interventions import at, offline_at
from scenarios.file.schema import Scenario


def stay_of(scenario: Scenario, seed: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the first and the last round of each service, and when it arrives, in rounds; all [M].

    A round that it does not come to is one behind the run.
    """
    end, never = scenario.rounds + 1, np.iinfo(np.int64).max
    arrival = np.array([service.arrival for service in scenario.services], dtype=np.int64)
    if scenario.timeline.slot is None:
        return arrival, np.full(len(arrival), end), arrival.astype(np.float64)
    starts = to_micro(scenario.timeline.slot) * np.arange(end)
    after: list[int] = []
    for stream in scenario.streams:
        uniform = uniforms(draw_key(seed, "arrivals", stream.name), 0, 0, 0, np.arange(stream.count))[0]
        gaps = np.array([-log(1.0 - it) / (stream.rate or 1.0) for it in uniform.tolist()])
        given = [to_micro(time) for time in stream.times]
        after.extend(given or np.cumsum(np.rint(MICRO * gaps).astype(np.int64)).tolist())
    came = (arrival - 1) * starts[1] + np.array([0] * (len(arrival) - len(after)) + after, dtype=np.int64)
    first = np.searchsorted(starts[:-1], came) + 1  # the round that begins at its arrival, or next after it
    patience = [never if it.patience is None else to_micro(it.patience) for it in scenario.services]
    over = np.searchsorted(starts[1:], np.minimum(came, never - np.array(patience)) + patience) + 1
    return first, over, 1 + came / starts[1]


class RoundConditions(NamedTuple):
    """The conditions of a round."""

    scenario: Scenario  # after the interventions up to the round
    budgets: Mapping[str, Micro]  # what each service may pay in the round
    free: Mapping[str, Micro]  # and what of that contracts leave for new offers
    contracts: Sequence[Contract]  # those that are served in the round
    closed: frozenset[int]  # clients under a contract
    owed: Mapping[int, Micro]  # what they, and others in force, come to from the round on, by the place of the service
    offline: frozenset[int]  # the clients that cannot be selected

    @property
    def cores(self) -> int:
        """K."""
        return self.scenario.clients.cores

    @property
    def cores_of(self) -> IntArray | None:
        """[C] how many services each client can serve at once; None if all can serve K."""
        return cores_of(self.scenario.clients)

    @property
    def capacity(self) -> int | IntArray:
        """K, or what each client has where some have less."""
        own = self.cores_of
        return self.cores if own is None else own

    @property
    def paper(self) -> bool:
        """Whether the round is cleared by the paper's mechanism."""
        return self.scenario.market.mechanism == DEFAULT

    def may(self, what: str, *, unknown: bool = True) -> bool:
        """Return what its mechanism says of itself, such as ``below_bid``; ``unknown`` where it is not here."""
        return bool(getattr(known(self.scenario.market.mechanism), what, unknown))


def conditions(
    scenario: Scenario,  # what was played
    number: int,  # the round
    spent: Mapping[str, Micro],  # what each service spent in earlier rounds
    contracts: Contracts,  # those in force
    saved: Mapping[str, Micro],  # what each service has left of the last round, if it can save
    arrivals: Sequence[int],  # [M] the first slot of each service
    slots: Sequence[int],  # those in which the round before began, 0 for the first, and the round itself
    starts: Sequence[int],  # when the two began, in microseconds
    # when clients are there; None if they always are, or if it is not known any more
    intervals: Intervals | None = None,
) -> RoundConditions:
    then = at(scenario, number)
    offline = offline_at(scenario, number)
    if intervals is not None:
        (client, first, last), begin, end = intervals.rows.T, slots[1], slots[1]
        if intervals.instants:  # clients are there at the first microsecond of an interval, but not at its last
            slot = round((scenario.timeline.period or 0) * MICRO)
            last, begin, end = last - 1, (begin - 1) * slot, end * slot - 1
        offline |= {*range(scenario.clients.count)} - {*client[(first <= end) & (begin <= last)].tolist()}
    budgets = {service.name: to_micro(service.budget) for service in then.services}
    served, owed, free = contracts.due(offline), contracts.outstanding(number), {}
    due = total_of((it.service, it.price) for it in served)
    for m, service in enumerate(scenario.services):
        name, cost = service.name, due.get(m, 0)
        if service.budget_cap is not None or scenario.timeline.decide:
            most = budgets[name] if service.budget_cap is None else to_micro(service.budget_cap)
            new = budgets[name] if arrivals[m] > slots[0] else _coming_in(scenario, budgets[name], starts)
            budgets[name] = min(new + saved[name], most)
        if arrivals[m] > slots[1]:
            budgets[name] = 0
        elif service.total_budget is not None:
            left = to_micro(service.total_budget) - spent[name] - owed.get(m, 0)
            budgets[name] = min(budgets[name], cost + left // contracts.length(number))
        budgets[name] = max(budgets[name], cost)
        free[name] = budgets[name] - cost
    closed = frozenset(client for _, client, *_ in contracts.state())
    return RoundConditions(then, budgets, free, served, closed, owed, frozenset(offline))


def _coming_in(scenario: Scenario, budget: Micro, starts: Sequence[int]) -> Micro:
    """Return what there is new of a slot's budget in a round: what has come in since the start of the last one."""
    if not scenario.timeline.decide:
        return budget
    before, now = (budget * instant // round((scenario.timeline.slot or 0) * MICRO) for instant in starts)
    return now - before


@dataclass(frozen=True)
class Hired:
    """What contracts come to in a block of rounds."""

    price: FloatArray  # [offers] of each row that is a contract's; NaN for others
    core: FloatArray  # [offers] and its core
    taken: BoolArray  # [offers] whether another contract should have kept the client from the offer
    missing: list[tuple[int, Contract]] = field(default_factory=list)  # rounds and contracts that have no row
    # the place among the block's lines of rounds.csv, the client and the fee, of each contract that is cancelled
    fees: list[tuple[int, int, Micro]] = field(default_factory=list)

    @property
    def rows(self) -> BoolArray:
        """Whether each offer is a contract's, and not made in its round."""
        return ~np.isnan(self.price)
