"""From a played round to its reports: the rows of offers.csv and rounds.csv, and what each service learns."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from des.client import Job
from des.money import MICRO, Micro
from des.offers import CheckedOffer
from des.population import Qualities
from des.records import Feedback, OfferReport, Outcome, RoundReport, ServiceReport
from des.round import Round
from des.service import ServiceSpec, ServiceState, reward
from fl.jobs import TrainingOutcome


def round_report(current: Round, states: Sequence[ServiceState], *, end: float, last: bool) -> RoundReport:
    """Return everything that happened in a round that was played to its end.

    Args:
        current: the round.
        states: of all services, as the round left them.
        end: simulated time at which the slot ended, seconds.
        last: no further round follows.
    """
    offers: dict[str, list[OfferReport]] = {spec.name: [] for spec in current.services}
    for m, offer in current.offers.items():
        name = current.services[m].name
        offers[name] = _offer_reports(current.number, name, m, current.world, offer, current.jobs[m])
    services = {
        spec.name: _service_report(spec, state, offers[spec.name])
        for spec, state in zip(current.services, states, strict=True)
    }
    return RoundReport(
        round=current.number,
        start=current.start,
        end=end,
        services=tuple(services.values()),
        offers=tuple(chain.from_iterable(offers.values())),
        events=tuple(current.journal.events),
        feedback={
            name: _feedback(services[name], current.number, offers[name], current.trained.get(name))
            for name in (current.services[m].name for m in current.active)
        },
        last=last,
    )


def _offer_reports(
    round_: int, name: str, m: int, world: Qualities, offer: CheckedOffer, jobs: Sequence[Job | None]
) -> list[OfferReport]:
    """Return service ``m``'s rows of offers.csv, in the order in which it chose."""
    wanted = offer.clients
    columns = zip(
        wanted.tolist(),
        world.data_size[m, wanted].tolist(),
        world.emd[m, wanted].tolist(),
        world.dqi[m, wanted].tolist(),
        world.bid[m, wanted].tolist(),
        offer.payments.tolist(),
        jobs,
        strict=True,
    )
    return [
        OfferReport(
            round=round_,
            service=name,
            client=client,
            data_size=data_size,
            emd=emd,
            dqi=dqi,
            bid=bid,
            payment=payment,
            outcome=job.outcome if job else Outcome.OUTBID,
            core=job.core if job else None,
            start=job.start if job else None,
            end=job.end if job else None,
        )
        for client, data_size, emd, dqi, bid, payment, job in columns
    ]


def _service_report(spec: ServiceSpec, state: ServiceState, offers: Sequence[OfferReport]) -> ServiceReport:
    """Return a service's row of rounds.csv, from its rows of offers.csv."""
    served = [offer for offer in offers if offer.outcome is Outcome.SERVED]
    starts = [offer.start for offer in served if offer.start is not None]
    ends = [offer.end for offer in served if offer.end is not None]
    offered: Micro = sum(offer.payment for offer in offers)
    spent: Micro = sum(offer.payment for offer in served)
    return ServiceReport(
        service=spec.name,
        dataset=spec.dataset,
        policy=spec.policy,
        status=state.status,
        accuracy=state.accuracy,
        target_accuracy=spec.target_accuracy,
        reward=reward(spec, state.accuracy),
        budget=spec.budget,
        offered=offered,
        spent=spent,
        wanted=len(offers),
        served=len(served),
        refused=len(offers) - len(served),
        samples=sum(offer.data_size for offer in served) if served else None,
        mean_emd=_mean([offer.emd for offer in served]),
        mean_dqi=_mean([offer.dqi for offer in served]),
        mean_bid=_mean([offer.bid / MICRO for offer in served]),
        mean_payment=_mean([offer.payment / MICRO for offer in served]),
        makespan=max(ends) - min(starts) if served else None,
    )


def _feedback(
    report: ServiceReport, round_: int, offers: Sequence[OfferReport], trained: TrainingOutcome | None
) -> Feedback:
    """Return what a service learns of its round."""
    served = np.array([offer.outcome is Outcome.SERVED for offer in offers], dtype=np.bool_)
    losses = np.full(len(offers), np.nan)
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
