"""A round as plain data: its conditions, and what is collected until its report is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from des.client import Job
from des.conditions import Conditions
from des.journal import Journal
from des.mechanism import Asks
from des.offers import CheckedOffer
from des.population import Qualities
from des.service import ServiceSpec
from fl.arrays import BoolArray
from fl.jobs import TrainingOutcome


@dataclass(slots=True)
class Round:
    """What is known of a round while it runs. Services are identified by their index.

    Attributes:
        number: n, from 1.
        start: simulated time of the data refresh, seconds.
        services: all of them, with the budgets of this round.
        active: those that take part.
        conditions: the conditions of the round.
        world: the clients' data and bids.
        asks: what services have to pay at least.
        journal: what has happened so far.
        offers: the offer of each service that takes part.
        step: how many times services have offered.
        asked: the services that may offer now.
        lost: the clients that have refused each service, if it may offer again.
        jobs: the jobs of each service, in the order of its offer; None where it was outbid.
        trained: what training yielded, by the service's name.
    """

    number: int
    start: float
    services: tuple[ServiceSpec, ...]
    active: tuple[int, ...]
    conditions: Conditions
    world: Qualities
    asks: Asks
    journal: Journal
    offers: dict[int, CheckedOffer] = field(default_factory=dict)
    step: int = 0
    asked: tuple[int, ...] = ()
    lost: dict[int, frozenset[int]] = field(default_factory=dict)
    jobs: dict[int, list[Job | None]] = field(default_factory=dict)
    trained: Mapping[str, TrainingOutcome] = field(default_factory=dict)

    def unwilling(self, m: int) -> BoolArray | None:
        """Return the clients [C] that service ``m`` cannot have: they do not serve it, or it has tried them already.

        None if there are none.
        """
        offer = self.offers.get(m)
        if self.asks.willing is None and offer is None:
            return None
        mask = np.zeros(self.world.bid.shape[1], dtype=np.bool_) if self.asks.willing is None else ~self.asks.willing[m]
        if offer is not None:
            mask[offer.clients] = True
        mask.setflags(write=False)
        return mask
