"""The event log of small rounds, written out in full.

In all of them a client holds 100 images with an EMD of 0.4 and bids 0.025 * 100 - 0.4 = 2.1. One image takes 0.01 s, so
an epoch takes 1 s; an upload takes half a second.
"""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from des.log_records import MarketEvent, Outcome
from des.money import MICRO
from des.observation import Offer
from des.timeline import Durations
from fl.arithmetic.draws import draw_key, integers, uniforms


def log(events: Sequence[MarketEvent]) -> str:
    """Write events as columns: time in seconds, event, service, client, core, amount (money in micro-units)."""
    return "\n".join(
        " ".join("-" if x is None else str(x) for x in (f"{e.sim_time / MICRO:.2f}", *e[2:])) for e in events
    )


def test_one_core_a_tie_and_an_outbid(make_market, make_offer, plain_service) -> None:
    market = make_market(["alpha", replace(plain_service, name="beta", local_epochs=2)], seed=2)
    # Both want client 0 for its bid; the keyed draw of this seed favours beta.
    alpha, beta = uniforms(draw_key(2, "ties"), 1, np.arange(2), 0)[0]
    assert beta < alpha
    market.open_round()
    report = market.close_round(
        {"alpha": make_offer((0, 2.1), (1, 3.0)), "beta": make_offer((2, 2.1), (0, 2.1), (1, 2.5))}
    )
    assert log(report.events) == dedent(
        """\
        0.00 refresh - - - -
        0.00 bid alpha - - 2100000
        0.00 bid beta - - 2100000
        0.00 decision alpha - - 5100000
        0.00 decision beta - - 6700000
        0.00 award alpha 1 0 3000000
        0.00 award beta 2 0 2100000
        0.00 award beta 0 0 2100000
        0.00 train_start alpha 1 0 -
        0.00 train_start beta 2 0 -
        0.00 train_start beta 0 0 -
        1.00 train_end alpha 1 0 -
        1.50 upload alpha 1 0 -
        1.50 aggregate alpha - - 100
        1.50 evaluate alpha - - 0.2
        1.50 pay alpha 1 - 3000000
        2.00 train_end beta 2 0 -
        2.00 train_end beta 0 0 -
        2.50 upload beta 2 0 -
        2.50 upload beta 0 0 -
        2.50 aggregate beta - - 200
        2.50 evaluate beta - - 0.2
        2.50 pay beta 2 - 2100000
        2.50 pay beta 0 - 2100000"""
    )
    # The same round as rows of offers.csv ...
    assert [(o.service, o.client, o.outcome, o.core, o.start, o.end) for o in report.offers] == [
        ("alpha", 0, Outcome.OUTBID, None, None, None),
        ("alpha", 1, Outcome.SERVED, 0, 0, 1_500_000),
        ("beta", 2, Outcome.SERVED, 0, 0, 2_500_000),
        ("beta", 0, Outcome.SERVED, 0, 0, 2_500_000),
        ("beta", 1, Outcome.OUTBID, None, None, None),
    ]
    # ... and of rounds.csv.
    row = report.services[1]
    assert (row.offered, row.spent, row.wanted, row.served, row.refused) == (6_700_000, 4_200_000, 3, 2, 1)
    assert (row.samples, row.mean_emd, row.mean_bid, row.mean_payment, row.makespan) == (200, 0.4, 2.1, 2.1, 2_500_000)
    assert row.mean_dqi == pytest.approx(0.68438, abs=5e-6)  # by hand in tests/fl/data/test_dqi.py
    # Each service's losses are those of its own clients (their index plus a half), and no others'.
    assert report.feedback["alpha"].losses.tolist() == pytest.approx([float("nan"), 1.5], nan_ok=True)
    assert report.feedback["beta"].losses.tolist() == pytest.approx([2.5, 0.5, float("nan")], nan_ok=True)
    assert report.feedback["beta"].served.tolist() == [True, True, False]


def test_two_cores_work_at_the_same_time(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], cores=2)
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 2.1)), "beta": make_offer((0, 2.2))})
    assert log(report.events[5:]) == dedent(
        """\
        0.00 award alpha 0 1 2100000
        0.00 award beta 0 0 2200000
        0.00 train_start alpha 0 1 -
        0.00 train_start beta 0 0 -
        1.00 train_end alpha 0 1 -
        1.00 train_end beta 0 0 -
        1.50 upload alpha 0 1 -
        1.50 upload beta 0 0 -
        1.50 aggregate alpha - - 100
        1.50 evaluate alpha - - 0.2
        1.50 pay alpha 0 - 2100000
        1.50 aggregate beta - - 100
        1.50 evaluate beta - - 0.2
        1.50 pay beta 0 - 2200000"""
    )


def test_a_service_that_wants_nobody_keeps_its_model(make_market) -> None:
    market = make_market(["alpha"])
    market.open_round()
    report = market.close_round({"alpha": Offer.none()})
    assert log(report.events) == dedent(
        """\
        0.00 refresh - - - -
        0.00 bid alpha - - 2100000
        0.00 decision alpha - - 0"""
    )
    row = report.services[0]
    assert (row.accuracy, row.reward) == (0.1, pytest.approx(100**0.1))
    assert (row.samples, row.mean_emd, row.mean_dqi, row.mean_bid, row.mean_payment, row.makespan) == (None,) * 6


def test_reaching_the_target_ends_in_an_exit(make_market, make_offer, plain_service) -> None:
    market = make_market([replace(plain_service, name="alpha", target_accuracy=0.2), "beta"])
    market.open_round()
    report = market.close_round({"alpha": make_offer((2, 2.1)), "beta": Offer.none()})
    assert log(report.events[-4:]) == dedent(
        """\
        1.50 aggregate alpha - - 100
        1.50 evaluate alpha - - 0.2
        1.50 pay alpha 2 - 2100000
        1.50 exit alpha - - 0.2"""
    )
    # Whoever has left bids no more: no client bids for alpha, and beta sees zeros in its place.
    seen = market.open_round()["beta"]
    assert seen.bids.tolist() == [[0, 0, 0], [2.1, 2.1, 2.1]]
    report = market.close_round({"beta": Offer.none()})
    assert log(report.events) == dedent(
        """\
        1.50 refresh - - - -
        1.50 bid beta - - 2100000
        1.50 decision beta - - 0"""
    )


def test_who_wants_nobody_is_done_before_the_others_begin(make_market, make_offer, plain_service) -> None:
    market = make_market(["alpha", replace(plain_service, name="beta", target_accuracy=0.1)])
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 2.1)), "beta": Offer.none()})
    assert log(report.events[6:8]) == dedent(
        """\
        0.00 exit beta - - 0.1
        0.00 train_start alpha 0 0 -"""
    )


def test_work_that_takes_no_time_is_done_in_order(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], cores=2, timeline=Durations(seconds_per_sample=0.0, upload_seconds=0.0))
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 2.1), (1, 2.1)), "beta": make_offer((0, 2.2))})
    assert [(event.event.value, event.service, event.client) for event in report.events[8:]] == [
        ("train_start", "alpha", 0), ("train_start", "alpha", 1), ("train_start", "beta", 0),
        ("train_end", "alpha", 0), ("train_end", "alpha", 1), ("train_end", "beta", 0),
        ("upload", "alpha", 0), ("upload", "alpha", 1), ("upload", "beta", 0),
        ("aggregate", "alpha", None), ("evaluate", "alpha", None), ("pay", "alpha", 0), ("pay", "alpha", 1),
        ("aggregate", "beta", None), ("evaluate", "beta", None), ("pay", "beta", 0),
    ]  # fmt: skip
    assert report.end == 0.0


def test_speeds_and_a_deadline(make_market, make_offer) -> None:
    # Full speed: 1 s + 0.5 s to upload. Half speed: 2 s + 0.5 s. The deadline falls into the slow client's upload.
    slow_market = make_market(
        ["alpha"],
        speeds=(1.0, 0.5),
        timeline=Durations(seconds_per_sample=0.01, upload_seconds=0.5, deadline=2.25),
        seed=6,
    )
    slow = integers(draw_key(6, "speed"), 2, 0, 0, np.arange(3))
    assert slow.tolist() == [0, 0, 1]  # clients 0 and 1 are fast, 2 is slow
    slow_market.open_round()
    report = slow_market.close_round({"alpha": make_offer((0, 2.1), (2, 2.2))})
    assert log(report.events[3:]) == dedent(
        """\
        0.00 award alpha 0 0 2100000
        0.00 award alpha 2 0 2200000
        0.00 train_start alpha 0 0 -
        0.00 train_start alpha 2 0 -
        1.00 train_end alpha 0 0 -
        1.50 upload alpha 0 0 -
        2.00 train_end alpha 2 0 -
        2.25 aggregate alpha - - 100
        2.25 evaluate alpha - - 0.2
        2.25 pay alpha 0 - 2100000"""
    )
    dropped = report.offers[1]
    assert (dropped.outcome, dropped.core, dropped.start, dropped.end) == (Outcome.DROPPED, 0, 0, 2_250_000)
    assert report.services[0].refused == 1
    assert slow_market.ledger.income == [2_100_000, 0, 0]  # who is late is not paid


WORK = ["train_start", "train_end", "upload", "aggregate", "evaluate", "pay"]


@pytest.mark.parametrize(
    ("deadline", "done", "outcome"),
    [
        (0.75, 1, Outcome.DROPPED),  # within the training, of which nobody waits for the end
        (1.0, 2, Outcome.DROPPED),  # training ends in time, and its update is late
        (1.5, 6, Outcome.SERVED),  # met to the second
    ],
)
def test_what_is_done_at_the_deadline_counts(make_market, make_offer, stub_federation, deadline, done, outcome) -> None:
    federation = stub_federation()
    market = make_market(["alpha"], timeline=Durations(0.01, 0.5, deadline=deadline), federation=federation)
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 2.1))})
    assert [event.event.value for event in report.events[4:]] == WORK[:done]
    assert (report.end, report.offers[0].outcome) == (deadline * MICRO, outcome)
    [(_, jobs)] = federation.asked
    assert len(jobs) == (outcome is Outcome.SERVED)  # what does not arrive is not trained


@pytest.mark.parametrize(
    ("slot", "ends", "outcome"),
    [
        (None, [1.5, 3.0, 4.5], Outcome.SERVED),  # each slot lasts until its last job is done
        (10.0, [10.0, 20.0, 30.0], Outcome.SERVED),  # slots of fixed length, long enough
        (1.25, [1.25, 2.5, 3.75], Outcome.DROPPED),  # too short: a slot is a deadline, too
    ],
)
def test_slots(make_market, make_offer, slot, ends, outcome) -> None:
    market = make_market(["alpha"], timeline=Durations(0.01, 0.5, slot=slot), rounds=3)
    reports = []
    while not market.finished:
        market.open_round()
        reports.append(market.close_round({"alpha": make_offer((0, 2.1))}))
    assert [report.end / MICRO for report in reports] == ends
    assert [report.start / MICRO for report in reports] == [0.0, *ends[:-1]]
    assert {offer.outcome for report in reports for offer in report.offers} == {outcome}


def test_a_client_that_departs_delivers_nothing_and_is_not_paid(make_market, make_offer) -> None:
    market = make_market(["alpha"], departure_rate=1.0)
    _, part = uniforms(draw_key(0, "departure"), 1, 0, 2)
    market.open_round()
    report = market.close_round({"alpha": make_offer((2, 2.1))})
    offer = report.offers[0]
    assert (offer.outcome, offer.end) == (Outcome.DROPPED, int(part * 1_500_000))
    assert report.end == offer.end  # nobody waits for it
    assert (market.ledger.income, report.services[0].accuracy) == ([0, 0, 0], 0.1)


def test_feedback_tells_a_dropout_from_a_defeat(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], cores=1, departure_rate=1.0)
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 3.0), (1, 3.0)), "beta": make_offer((1, 6.0))})
    outcomes = {(offer.service, offer.client): offer.outcome for offer in report.offers}
    assert outcomes == {("alpha", 0): Outcome.DROPPED, ("alpha", 1): Outcome.OUTBID, ("beta", 1): Outcome.DROPPED}
    alpha, beta = report.feedback["alpha"], report.feedback["beta"]
    assert (alpha.served.tolist(), alpha.dropped.tolist()) == ([False, False], [True, False])
    assert (alpha.won.tolist(), beta.won.tolist()) == ([True, False], [True])


def test_some_depart_and_some_stay(make_market, pay_the_bid, stub_federation) -> None:
    federation = stub_federation(gain=0.0)
    market = make_market(["alpha"], departure_rate=0.25, count=8, rounds=50, federation=federation)
    outcomes = []
    while not market.finished:
        seen = market.open_round()
        outcomes += [o.outcome for o in market.close_round({"alpha": pay_the_bid(seen["alpha"])}).offers]
    gone = outcomes.count(Outcome.DROPPED)
    assert len(outcomes) == 400
    assert 70 < gone < 130  # 100 expected, standard deviation 9
