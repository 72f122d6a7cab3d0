"""From a played round to its reports: the rows of rounds.csv and offers.csv, and what each service learns."""

from collections.abc import Iterator, Sequence

import numpy as np

from des.client import Job
from des.money import MICRO, Micro
from des.offers import CheckedOffer
from des.population import Qualities
from des.records import Feedback, OfferReport, Outcome, ServiceReport, Status
from des.service import ServiceSpec, ServiceState, reward
from fl.jobs import TrainingOutcome


def service_report(
    spec: ServiceSpec,
    state: ServiceState,
    world: Qualities,
    m: int,
    offer: CheckedOffer | None,
    jobs: Sequence[Job | None],
) -> ServiceReport:
    """Return service ``m``'s row of the round. ``offer`` is None for a service that has left."""
    served = [
        (job, int(payment))
        for job, payment in zip(jobs, () if offer is None else offer.payments, strict=True)
        if job and job.outcome is Outcome.SERVED
    ]
    at = [(m, job.client) for job, _ in served]
    starts = [job.start for job, _ in served if job.start is not None]
    ends = [job.end for job, _ in served if job.end is not None]
    spent: Micro = sum(payment for _, payment in served)
    return ServiceReport(
        service=spec.name,
        dataset=spec.dataset,
        policy=spec.policy,
        status=state.status,
        accuracy=state.accuracy,
        target_accuracy=spec.target_accuracy,
        reward=reward(spec, spec.target_accuracy if state.status is Status.LEFT else state.accuracy),
        budget=spec.budget,
        offered=0 if offer is None else offer.total,
        spent=spent,
        wanted=len(jobs),
        served=len(served),
        refused=len(jobs) - len(served),
        samples=sum(int(world.data_size[i]) for i in at) if at else None,
        mean_emd=_mean([float(world.emd[i]) for i in at]),
        mean_dqi=_mean([float(world.dqi[i]) for i in at]),
        mean_bid=_mean([int(world.bid[i]) / MICRO for i in at]),
        mean_payment=_mean([payment / MICRO for _, payment in served]),
        makespan=max(ends) - min(starts) if served else None,
    )


def offer_reports(
    round_: int, name: str, m: int, world: Qualities, offer: CheckedOffer, jobs: Sequence[Job | None]
) -> Iterator[OfferReport]:
    """Yield service ``m``'s rows of offers.csv, in the order in which it chose."""
    for client, payment, job in zip(offer.clients.tolist(), offer.payments.tolist(), jobs, strict=True):
        yield OfferReport(
            round=round_,
            service=name,
            client=client,
            data_size=int(world.data_size[m, client]),
            emd=float(world.emd[m, client]),
            dqi=float(world.dqi[m, client]),
            bid=int(world.bid[m, client]),
            payment=payment,
            outcome=job.outcome if job else Outcome.OUTBID,
            core=job.core if job else None,
            start=job.start if job else None,
            end=job.end if job else None,
        )


def feedback(
    round_: int, report: ServiceReport, jobs: Sequence[Job | None], trained: TrainingOutcome | None
) -> Feedback:
    """Return what a service learns of its round."""
    served = np.array([job is not None and job.outcome is Outcome.SERVED for job in jobs], dtype=np.bool_)
    losses = np.full(len(jobs), np.nan)
    if trained is not None:
        losses[served] = trained.losses
    return Feedback(
        round=round_,
        accuracy=report.accuracy,
        reward=report.reward,
        served=served,
        losses=losses,
        status=report.status,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
