"""What each service sees when it is asked to offer: all bids, and its own DQI and budget, but not its rivals'."""

from collections.abc import Mapping, Sequence

import numpy as np

from des.money import MICRO, Micro
from des.records import Observation, Privileged
from des.round import Round
from des.service import ServiceState
from fl.streams import stream_key


def observations(
    current: Round,
    states: Sequence[ServiceState],
    left: Mapping[int, Micro],
    rounds: int,
    seed: int,
    *,
    over_budget: bool = False,
) -> dict[str, Observation]:
    """Return what each service that may offer now observes, by name.

    Args:
        current: the round, after its bids were closed.
        states: the states of all services, as the last round left them.
        left: what each service that may offer can still spend in this round, micro-units.
        rounds: N.
        seed: the run's seed.
        over_budget: whether offers may add up to more than that.
    """
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
            dqi=world.dqi[m],
            bids=bids,
            budget=left[m] / MICRO,
            cores=current.conditions.cores,
            accuracy=states[m].accuracy,
            target_accuracy=spec.target_accuracy,
            key=stream_key(seed, "policy", spec.name, current.number),
            offline=current.conditions.offline,
            privileged=Privileged(world.data_size[m], world.emd[m]) if spec.privileged else None,
            unwilling=current.unwilling(m),
            over_budget=over_budget,
        )
        for m, spec in ((m, current.services[m]) for m in current.asked)
    }
