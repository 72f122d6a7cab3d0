"""Awards: from a round's offers to jobs. Their prices, lengths and outcomes are certain from then on."""

import numpy as np

from des.allocation import NO_CORE
from des.client import Job, Timeline
from des.mechanism import Book, Mechanism, clear
from des.population import Population
from des.round import Round
from des.rows import Kind, Outcome
from fl.arrays import FloatArray, UInt32Array
from fl.draws import draw_key, uniforms
from fl.jobs import TrainingJob


class Platform:
    """Clears each round by the market's mechanism, and works out how long each job takes."""

    def __init__(self, population: Population, timeline: Timeline, mechanism: Mechanism, seed: int) -> None:
        self._population = population
        self._mechanism = mechanism
        self._timeline = timeline
        self._patience = timeline.patience
        self._ties = draw_key(seed, "ties")

    def award(self, current: Round) -> None:
        """Let the mechanism decide who is served at what price, and turn awards into the round's jobs.

        Raises:
            ClearingError: the mechanism broke a rule.
        """
        offers = current.offers.values()
        services = np.repeat(list(current.offers), [len(offer.clients) for offer in offers])
        clients = np.concatenate([offer.clients for offer in offers])
        payments = np.concatenate([offer.payments for offer in offers])

        def tie_order(client: int) -> FloatArray:
            # One number for each service, not a permutation: a service added at the end does not change the order.
            return tie_order_of(self._ties, current.number, len(current.services), client)

        bids = current.world.bid[services, clients]
        book = Book(services, clients, payments, bids, current.conditions.cores, tie_order)
        clearing = clear(self._mechanism, book, current.number)
        samples = current.world.data_size[services, clients]
        epochs = np.array([spec.local_epochs for spec in current.services])[services]
        compute = samples * epochs * self._timeline.seconds_per_sample / self._population.speed[clients]
        columns = (services, clients, payments, clearing.core, clearing.price, samples, compute)
        current.jobs = {m: [] for m in current.offers}
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for m, client, payment, core, price, images, seconds in rows:
            job = None
            if core != NO_CORE:
                name, limit = current.services[m].name, self._limit(current.number, client, seconds)
                job = Job(name, client, core, price, images, seconds, self._timeline.upload_seconds, limit)
                current.journal.record(Kind.AWARD, name, client, core, payment)
            current.jobs[m].append(job)

    def _limit(self, round_: int, client: int, compute: float) -> float:
        """Return after how many seconds a job is cut off: the platform stops waiting, or the client leaves."""
        part = self._population.departs(round_, client)
        if part is None:
            return self._patience
        return min(self._patience, part * (compute + self._timeline.upload_seconds))


def tie_order_of(key: UInt32Array, round_: int, services: int, client: int) -> FloatArray:
    """Return the random numbers [M] that break a client's ties in a round: the lower one goes first.

    Args:
        key: the run's stream "ties" (``fl.draws``).
        round_: n, from 1.
        services: M.
        client: its index.
    """
    order: FloatArray = uniforms(key, round_, np.arange(services), client)[0]
    return order


def training_jobs(current: Round) -> list[TrainingJob]:
    """Return the jobs whose updates will arrive; no others need to be trained."""
    emd = current.world.emd
    return [
        TrainingJob(job.service, job.client, job.samples, float(emd[m, job.client]))
        for m, jobs in current.jobs.items()
        for job in jobs
        if job and job.outcome is Outcome.SERVED
    ]
