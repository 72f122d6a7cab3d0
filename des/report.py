"""From a round that was played to its report: the rows of offers.csv and rounds.csv, and what each service learns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from des.clients.population import Qualities
from des.log_records import ClientReport, OfferReport, Outcome, RoundReport, ServiceReport
from des.money import MICRO, Micro
from des.observation import Feedback
from des.offer_checks import CheckedOffer
from des.round import Round
from des.service import ServiceState, reward
from des.timeline import Job
from fl.training.jobs import TrainingOutcome


def round_report(
    current: Round,  # the round
    states: Sequence[ServiceState],  # the states of all services, as the round left them
    *,
    end: float,  # simulated time at which the slot ended, seconds
    last: bool,  # whether no further round follows
    truthful: bool,  # whether clients tell the truth, so that what they know stands in their offers already
) -> RoundReport:
    """Return everything that happened in a round that was played to its end."""
    offers: dict[str, list[OfferReport]] = {spec.name: [] for spec in current.services}
    for m, offer in current.offers.items():
        name = current.services[m].name
        offers[name] = _offer_reports(current.number, name, m, current.world, offer, current.jobs[m])
    services = {
        spec.name: ServiceReport.of(spec, state, reward(spec, state), offers[spec.name])
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
        clients=None if truthful else tuple(chain.from_iterable(_client_reports(current, offers))),
    )


def _offer_reports(
    round_: int, name: str, m: int, world: Qualities, offer: CheckedOffer, jobs: Sequence[Job | None]
) -> list[OfferReport]:
    """Return service ``m``'s rows of offers.csv, in the order in which it chose."""
    wanted = offer.clients
    columns = (
        wanted.tolist(),
        world.data_size[m].take(wanted).tolist(),
        world.emd[m].take(wanted).tolist(),
        world.dqi[m].take(wanted).tolist(),
        world.bid[m].take(wanted).tolist(),
        offer.payments.tolist(),
        map(_fate, jobs),
    )
    return [OfferReport(round_, name, *offered, *fate) for *offered, fate in zip(*columns, strict=True)]


def _client_reports(current: Round, offers: Mapping[str, Sequence[OfferReport]]) -> Iterator[list[ClientReport]]:
    """Yield each service's rows of clients.csv, given all rows of offers.csv by service."""
    for m, spec in enumerate(current.services):
        held = current.world.held
        yield [
            ClientReport(
                offer.round,
                offer.service,
                offer.client,
                int(held.data_size[m, offer.client]),
                offer.data_size,
                float(held.emd[m, offer.client]),
                offer.emd,
                int(held.cost[m, offer.client]),
                offer.bid,
                offer.paid,
                None if offer.paid is None else offer.paid - int(held.cost[m, offer.client]),
            )
            for offer in offers[spec.name]
        ]


def _fate(job: Job | None) -> tuple[Micro | None, Outcome, int | None, float | None, float | None]:
    """Return what became of an offer: the money paid, outcome, core, start and end."""
    if job is None:
        return None, Outcome.OUTBID, None, None, None
    return job.price if job.outcome is Outcome.SERVED else None, job.outcome, job.core, job.start, job.end


def _feedback(
    report: ServiceReport, round_: int, offers: Sequence[OfferReport], trained: TrainingOutcome | None
) -> Feedback:
    served = np.array([offer.outcome is Outcome.SERVED for offer in offers], dtype=np.bool_)
    dropped = np.array([offer.outcome is Outcome.DROPPED for offer in offers], dtype=np.bool_)
    losses = np.full(len(offers), np.nan)
    if trained is not None:
        losses[served] = trained.losses
    paid = np.array([offer.paid or 0 for offer in offers], dtype=np.float64) / MICRO
    return Feedback(
        round=round_,
        accuracy=report.accuracy,
        reward=report.reward,
        served=served,
        dropped=dropped,
        paid=paid,
        losses=losses,
        status=report.status,
    )
