"""Awards: from a round's offers to jobs, whose lengths and fates are certain from then on."""

import numpy as np

from des.allocation import NO_CORE, allocate
from des.client import Job, Timeline
from des.population import Population
from des.records import FloatArray, Kind, Outcome
from des.round import Round
from fl.jobs import TrainingJob
from fl.streams import stream


class Platform:
    """Allocates the clients' cores, and knows how long each job takes."""

    def __init__(self, population: Population, timeline: Timeline, seed: int) -> None:
        self._population = population
        self._timeline = timeline
        self._patience = timeline.patience
        self._seed = seed

    def award(self, current: Round) -> None:
        """Give the clients' cores to the highest payments, and turn awards into the round's jobs."""
        offers = current.offers.values()
        services = np.repeat(list(current.offers), [len(offer.clients) for offer in offers])
        clients = np.concatenate([offer.clients for offer in offers])
        payments = np.concatenate([offer.payments for offer in offers])

        def tie_order(client: int) -> FloatArray:
            # One number for each service, not a permutation: one added at the end leaves the others' order as it was.
            return stream(self._seed, "ties", current.number, client).random(len(current.services))

        cores = allocate(services, clients, payments, current.conditions.cores, tie_order)
        current.jobs = {m: [] for m in current.offers}
        columns = (services, clients, payments, cores)
        for m, client, payment, core in zip(*(column.tolist() for column in columns), strict=True):
            job = None
            if core != NO_CORE:
                job = self._job(m, client, core, current)
                current.journal.record(Kind.AWARD, job.service, client, core, payment)
            current.jobs[m].append(job)

    def _job(self, m: int, client: int, core: int, current: Round) -> Job:
        spec = current.services[m]
        samples = int(current.world.data_size[m, client])
        work = samples * spec.local_epochs * self._timeline.seconds_per_sample
        compute, upload = work / float(self._population.speed[client]), self._timeline.upload_seconds
        part = self._population.departs(current.number, client)
        stays = float("inf") if part is None else part * (compute + upload)
        return Job(spec.name, client, core, samples, compute, upload, min(self._patience, stays))


def training_jobs(current: Round) -> list[TrainingJob]:
    """Return the jobs whose updates will arrive; nothing else needs to be trained."""
    emd = current.world.emd
    return [
        TrainingJob(job.service, job.client, job.samples, float(emd[m, job.client]))
        for m, jobs in current.jobs.items()
        for job in jobs
        if job and job.outcome is Outcome.SERVED
    ]
