"""The services that take part in a round: their money, and what each sees when it is asked to offer.

Services may arrive later, and may have a budget for the whole run. They see all bids, and their own DQI and budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from des.ledger import Ledger
from des.money import MICRO, Micro
from des.observation import Observation, Privileged, Status
from des.round import Round
from des.service import ServiceSpec, ServiceState
from fl.arithmetic.streams import stream_key
from fl.arrays import FloatArray


def funded(
    specs: Sequence[ServiceSpec],  # the services
    states: Sequence[ServiceState],  # their states before the round; those that wait take part from their first one on
    round_: int,  # the round
    budgets: Mapping[str, Micro],  # B_m per round by service, micro-units
    ledger: Ledger,  # what was paid so far
) -> tuple[ServiceSpec, ...]:
    """Let services arrive whose first round it is, and return all with what each may offer.

    That is its budget per round, or what is left of the one for the whole run, if that is less; nothing before it
    arrives.
    """
    found = []
    for spec, state in zip(specs, states, strict=True):
        if state.arrives(spec, round_):
            state.status = Status.TRAINING
        left, budget = ledger.left(spec.name), budgets[spec.name]
        if state.status is Status.WAITING:
            budget = 0
        elif left is not None:
            budget = min(budget, left)
        found.append(spec if spec.budget == budget else replace(spec, budget=budget))
    return tuple(found)


def observations(
    current: Round,  # the round, after its bids were closed
    states: Sequence[ServiceState],  # the states of all services, as the last round left them
    ledger: Ledger,  # what each can still spend in this round, and in the whole run
    rounds: int,  # N
    seed: int,  # the run's seed
    *,
    public_bids: bool = True,  # whether a service sees the bids to its rivals
    over_budget: bool = False,  # whether offers may add up to more than that
) -> dict[str, Observation]:
    """Return what each service that may offer now observes, by name."""
    world = current.world
    names = tuple(spec.name for spec in current.services)
    bids = current.asks.least / MICRO
    for m in range(len(names)):
        if m not in current.active:
            bids[m] = 0.0
    bids.setflags(write=False)
    return {
        spec.name: Observation(
            round=current.number,
            rounds=rounds,
            service=spec.name,
            services=names,
            dqi=world.seen[m],
            bids=bids if public_bids else only(bids, m),
            budget=ledger.accounts[spec.name].free / MICRO,
            cores=current.conditions.cores,
            accuracy=states[m].accuracy,
            target_accuracy=spec.target_accuracy,
            key=stream_key(seed, "policy", spec.name, current.number),
            offline=current.conditions.offline,
            privileged=Privileged(world.data_size[m], world.emd[m]) if spec.privileged else None,
            unwilling=current.unwilling(m),
            over_budget=over_budget,
            bids_public=public_bids,
            total_left=None if (total := ledger.left(spec.name)) is None else total / MICRO,
        )
        for m, spec in ((m, current.services[m]) for m in current.asked)
    }


def only(bids: FloatArray, service: int) -> FloatArray:
    """Return bids [M, C] of which all but one service's row are zero, read-only."""
    own = np.zeros(bids.shape)
    own[service] = bids[service]
    own.setflags(write=False)
    return own
