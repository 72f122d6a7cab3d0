"""A round as plain data: its conditions, and what is collected until its report is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from des.clients.population import Qualities
from des.clock import Microseconds
from des.log_records import Outcome
from des.mechanism import Asks, Book
from des.offer_checks import CheckedOffer
from des.schedule import Conditions
from des.service import ServiceSpec
from des.timeline import Job, Journal
from fl.arrays import BoolArray
from fl.training.jobs import TrainingOutcome


@dataclass(slots=True)
class Round:
    """A round while it runs. Services are identified by their index."""

    number: int  # n, from 1
    start: Microseconds  # simulated time of the data refresh
    services: tuple[ServiceSpec, ...]  # all of them, with the budgets of this round
    active: tuple[int, ...]  # those that take part
    conditions: Conditions  # the conditions of the round
    world: Qualities  # the clients' data and bids
    asks: Asks  # what services have to pay at least
    journal: Journal  # what has happened so far
    offers: dict[int, CheckedOffer] = field(default_factory=dict)  # the offer of each service that takes part
    book: Book | None = None  # all offers, once cores are allocated
    step: int = 0  # how many times services have offered
    asked: tuple[int, ...] = ()  # the services that may offer now
    # the clients that have refused each service, if it may offer again
    lost: dict[int, frozenset[int]] = field(default_factory=dict)
    # the jobs of each service, in the order of its offer; None where it was outbid
    jobs: dict[int, list[Job | None]] = field(default_factory=dict)
    trained: Mapping[str, TrainingOutcome] = field(default_factory=dict)  # what training yielded, by the service's name

    def served(self, m: int) -> list[Job]:
        """Return the jobs of service ``m`` whose updates arrive, in the order of its offer."""
        return [job for job in self.jobs.get(m, ()) if job and job.outcome is Outcome.SERVED]

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
