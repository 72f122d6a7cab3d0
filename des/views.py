"""What each service sees when it is asked to offer: bids, and its own DQI and budget, but not its rivals'."""

from collections.abc import Sequence

import numpy as np

from des.ledger import Ledger
from des.money import MICRO
from des.records import Observation, Privileged
from des.round import Round
from des.service import ServiceState
from fl.arrays import FloatArray
from fl.streams import stream_key


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
    world, active = current.world, list(current.active)
    names = tuple(spec.name for spec in current.services)
    bids = np.zeros(world.bid.shape)
    bids[active] = current.asks.least[active] / MICRO
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
