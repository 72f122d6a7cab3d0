"""Invariants of any offers: constraints (2), (4) and (5), the highest payments win, and money is conserved.

Random markets, random offers. Markups come from a small set, so that ties are common.
"""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from des.log_records import Outcome, RoundReport
from des.money import MICRO
from des.observation import Observation, Offer
from des.timeline import Durations
from support.tiers import examples

MARKUPS = [0.0, 0.000001, 0.5, 3.0]

markets = st.fixed_dictionaries(
    {
        "services": st.integers(1, 4),
        "count": st.integers(1, 6),
        "cores": st.integers(1, 5),
        "budget": st.integers(0, 40_000_000),
        "seed": st.integers(0, 2**63),
        "departure_rate": st.sampled_from([0.0, 0.5]),
        "timeline": st.sampled_from(
            [Durations(0.01, 0.5), Durations(0.01, 0.5, slot=3.0), Durations(0.01, 0.5, deadline=2)]
        ),
    }
)


@st.composite
def offers(draw: st.DrawFn, seen: Observation) -> Offer:
    """Any offer within (4) and (5): some clients in any order, each paid its bid and a markup."""
    clients = draw(st.lists(st.integers(0, seen.clients - 1), unique=True))
    payments = [float(seen.own_bids[client]) + draw(st.sampled_from(MARKUPS)) for client in clients]
    while sum(round(p * MICRO) for p in payments) > round(seen.budget * MICRO):
        payments.pop()
    return Offer(np.array(clients[: len(payments)], dtype=np.int64), np.array(payments, dtype=np.float64))


@examples(150)
@given(data=st.data(), options=markets)
def test_any_offers_keep_the_constraints_and_the_money(
    make_market, plain_service, paper_clients, stub_federation, data, options
) -> None:
    budget, services = options.pop("budget"), options.pop("services")
    specs = [replace(plain_service, name=f"s{m}", budget=budget) for m in range(services)]
    federation = stub_federation(start=0.5, gain=0.2)  # leaves after its third round with an update
    market = make_market(specs, paper_clients, rounds=4, federation=federation, **options)
    paid: Counter[str] = Counter()
    received: Counter[int] = Counter()
    taken_part: Counter[str] = Counter()
    while not market.finished:
        seen = market.open_round()
        report = market.close_round({name: data.draw(offers(seen[name])) for name in seen})
        check_constraints(report, options["cores"], budget)
        check_highest_payments_win(report, options["cores"])
        for offer in report.offers:
            if offer.outcome is Outcome.SERVED:
                paid[offer.service] += offer.payment
                received[offer.client] += offer.payment
        taken_part.update(list(seen))
        assert [s.service for s in report.services] == [spec.name for spec in specs]  # whoever has left keeps its row

    assert market.ledger.income == [received[client] for client in range(options["count"])]
    for spec in specs:
        account = market.ledger.accounts[spec.name]
        assert account.granted == taken_part[spec.name] * budget
        assert account.paid == paid[spec.name]
        assert account.lapsed == account.granted - account.paid
        assert account.free == account.held == 0


def check_constraints(report: RoundReport, cores: int, budget: int) -> None:
    at_work: dict[int, list[int]] = defaultdict(list)
    offered: Counter[str] = Counter()
    for offer in report.offers:
        offered[offer.service] += offer.payment
        assert 0 <= offer.bid <= offer.payment  # (5)
        if offer.core is not None:
            at_work[offer.client].append(offer.core)
        assert (offer.core is None) == (offer.outcome is Outcome.OUTBID)
    for used in at_work.values():
        assert len(used) <= cores  # (2)
        assert sorted(used) == list(range(len(used)))
    for service in report.services:
        assert service.offered == offered[service.service] <= budget  # (4)
        spent = [o.payment for o in report.offers if o.service == service.service and o.outcome is Outcome.SERVED]
        assert (service.spent, service.served) == (sum(spent), len(spent))
        assert service.served + service.refused == service.wanted


def check_highest_payments_win(report: RoundReport, cores: int) -> None:
    by_client = sorted(report.offers, key=lambda offer: offer.client)
    for _, group in groupby(by_client, key=lambda offer: offer.client):
        wanting = list(group)
        won = [offer.payment for offer in wanting if offer.core is not None]
        lost = [offer.payment for offer in wanting if offer.core is None]
        assert len(won) == min(cores, len(wanting))  # no core idles while somebody would pay for it
        assert not lost or max(lost) <= min(won)
