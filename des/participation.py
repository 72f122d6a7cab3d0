"""The services that take part in a round: their money, and what each sees when it is asked to offer.

Services may arrive later, and may have a budget for the whole run. They see all bids, and their own DQI and budget.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from des.clients.population import Qualities
from des.ledger import Ledger
from des.money import MICRO, Micro, MicroArray
from des.observation import Observation, Privileged, Progress, Status, Turn
from des.service import ServiceSpec, ServiceState
from fl.arithmetic.streams import stream_key
from fl.arrays import BoolArray, FloatArray, IntArray


def with_budgets(
    specs: Sequence[ServiceSpec],  # the services
    states: Sequence[ServiceState],  # their states in the round
    budgets: Mapping[str, Micro],  # B_m by service, micro-units
    comes_in: Mapping[str, Micro],  # what of it is there from the round on: all, unless a slot has several rounds
    ledger: Ledger,  # what was paid so far
    due: Mapping[str, Micro],  # what contracts cost it in the round, by service
    length: int,  # for how many rounds an offer binds
) -> tuple[ServiceSpec, ...]:
    """Return the services with what each may offer in a round.

    That is its budget per round, with what it has saved of earlier ones where it can save, up to its cap, or a whole
    budget; or what is left of the one for the whole run, if that is less; nothing before it arrives. Of what is left,
    offers that bind for several rounds need so many times their payments, and what contracts cost is in the budget in
    any case.
    """
    services = []
    for spec, state in zip(specs, states, strict=True):
        left, cap, owed = ledger.left(spec.name), spec.budget_cap, due.get(spec.name, 0)
        budget = comes_in[spec.name] + ledger.accounts[spec.name].saved
        budget = min(budget, budgets[spec.name] if cap is None else cap)
        if state.status is Status.WAITING:
            budget = 0
        elif left is not None:
            budget = min(budget, owed + left // length)
        budget = max(budget, owed)
        services.append(spec if spec.budget == budget else replace(spec, budget=budget))
    return tuple(services)


class PublicView(NamedTuple):
    """What services see of a round alike; each sees of it what the market discloses, and its own state besides."""

    round: int
    rounds: int  # N
    seed: int  # the run's
    services: tuple[str, ...]
    world: Qualities
    bids: FloatArray  # [M, C] the least that can be offered, money; rows of services that take no part are zero
    cores: int  # K
    offline: frozenset[int]
    public_bids: bool  # whether a service sees the bids to its rivals
    over_budget: bool  # whether offers may add up to more than the budget
    cores_of: IntArray | None = None  # [C] what each client has; None if all have K

    def of(
        self,
        m: int,  # the service
        *,
        budget: Micro,  # what it can still spend in this round
        total_left: Micro | None,  # and in the whole run; None where nothing limits that
        accuracy: float,
        target_accuracy: float,
        privileged: bool = False,
        unwilling: BoolArray | None = None,  # [C]
        progress: Progress | None = None,
        turn: Turn | None = None,  # where clients come one after another
    ) -> Observation:
        name, world, bids = self.services[m], self.world, self.bids
        if not self.public_bids:
            bids = np.zeros(self.bids.shape)
            bids[m] = self.bids[m]
        bids.setflags(write=False)
        return Observation(
            round=self.round,
            rounds=self.rounds,
            service=name,
            services=self.services,
            dqi=world.seen[m],
            bids=bids,
            budget=budget / MICRO,
            cores=self.cores,
            accuracy=accuracy,
            target_accuracy=target_accuracy,
            key=_key(self.seed, name, self.round, turn),
            offline=self.offline,
            privileged=Privileged(world.data_size[m], world.emd[m]) if privileged else None,
            unwilling=unwilling,
            over_budget=self.over_budget,
            bids_public=self.public_bids,
            total_left=None if total_left is None else total_left / MICRO,
            cores_of=self.cores_of,
            progress=progress,
            turn=turn,
        )


def when_next_comes(
    seen: Observation,  # what a service saw when another client of the same round came
    seed: int,  # the run's
    turn: Turn,
    *,
    budget: Micro,
    unwilling: BoolArray | None,  # [C]
) -> Observation:
    """Return what the service sees now: all but this is as it was, in the same arrays."""
    key = _key(seed, seen.service, seen.round, turn)
    return replace(seen, key=key, turn=turn, budget=budget / MICRO, unwilling=unwilling)


def _key(seed: int, service: str, round_: int, turn: Turn | None) -> bytes:
    """Return the key of a service's stream of random numbers, in a round or one of its turns."""
    return stream_key(seed, "policy", service, round_, *([] if turn is None else [turn.number]))


def bids_shown(least: MicroArray, services: Collection[int]) -> FloatArray:
    """Return the least that can be offered [M, C], money, with rows of zeros for all but the services named."""
    bids: FloatArray = least / MICRO
    for m in range(len(bids)):
        if m not in services:
            bids[m] = 0.0
    return bids
