"""What each service sees when the bids are closed: all bids, and its own DQI and budget, but not its rivals'."""

from collections.abc import Sequence

import numpy as np

from des.money import MICRO
from des.records import Observation, Privileged
from des.round import Round
from des.service import ServiceState
from fl.streams import stream_key


def observations(current: Round, states: Sequence[ServiceState], rounds: int, seed: int) -> dict[str, Observation]:
    """Return what each service that takes part in the round observes, by name.

    Args:
        current: the round, after its bids were closed.
        states: the states of all services, as the last round left them.
        rounds: N.
        seed: the run's seed.
    """
    world, active = current.world, list(current.active)
    names = tuple(spec.name for spec in current.services)
    bids = np.zeros(world.bid.shape)
    bids[active] = world.bid[active] / MICRO
    bids.setflags(write=False)
    return {
        spec.name: Observation(
            round=current.number,
            rounds=rounds,
            service=spec.name,
            services=names,
            dqi=world.dqi[m],
            bids=bids,
            budget=spec.budget / MICRO,
            cores=current.conditions.cores,
            accuracy=states[m].accuracy,
            target_accuracy=spec.target_accuracy,
            key=stream_key(seed, "policy", spec.name, current.number),
            offline=current.conditions.offline,
            privileged=Privileged(world.data_size[m], world.emd[m]) if spec.privileged else None,
        )
        for m, spec in ((m, current.services[m]) for m in active)
    }
