"""Work that outlasts its round, worked by hand: a client with one core works for 3 seconds, and a period takes 2."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.ledger import LedgerError
from des.log_records import Kind, Outcome, RoundReport
from des.market import Market
from des.mechanism import Book, Clearing
from des.mechanisms.pay_as_offered import PayAsOffered
from des.observation import Offer
from des.ongoing import Ongoing
from des.schedule import Change, OnlineTimes
from des.service import ServiceSpec
from des.timeline import Clock, Durations
from fl.surrogate.learning_curves import SurrogateFederation
from fl.training.trigger import TRIGGERS, Trigger
from support.curves import CURVE

MakeMarket = Callable[..., Market]
MakeOffer = Callable[..., Offer]

SECOND = 1_000_000
CLOCK = Durations(seconds_per_sample=0.025, upload_seconds=0.5, period=2.0)  # 100 images: 2.5 + 0.5 s


@pytest.fixture
def market_with(make_market: MakeMarket) -> Callable[..., Market]:
    """``market_with("fedasync", "semi-async", ...)``: services alpha, beta ... with these triggers; one client."""

    def make(*triggers: str | Trigger, clock: Durations = CLOCK, rounds: int = 4, **clients: Any) -> Market:
        names = ["alpha", "beta", "gamma"][: len(triggers)]
        federation = SurrogateFederation(dict.fromkeys(names, CURVE), 0)
        made = [TRIGGERS.create(it) if isinstance(it, str) else it for it in triggers]
        people = {"count": 1, **clients}
        return make_market(names, timeline=clock, federation=federation, triggers=made, rounds=rounds, **people)

    return make


def play(market: Market, *rounds: Mapping[str, Offer]) -> list[RoundReport]:
    """Play rounds, in which whoever makes no offer wants nobody."""
    reports = []
    for offers in rounds:
        seen = market.open_round()
        reports.append(market.close_round({name: offers.get(name, Offer.none()) for name in seen}))
    return reports


def times(report: RoundReport, kind: Kind) -> list[tuple[str | None, float]]:
    return [(event.service, event.sim_time / SECOND) for event in report.events if event.event is kind]


def test_a_core_that_comes_free_goes_to_the_best_offer_that_stands(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", "semi-async")
    five, four = make_offer((0, 5.0)), make_offer((0, 4.0))
    first, second, third, fourth = play(market, {"alpha": five, "beta": four}, {"beta": four}, {}, {})
    assert [(it.service, it.outcome, it.start, it.end) for it in first.offers] == [
        ("alpha", Outcome.SERVED, 0, 3 * SECOND), ("beta", Outcome.OUTBID, None, None)
    ]  # fmt: skip
    # beta's offer of the second period stands while the client works for alpha, and is taken at 3 s
    assert [(it.service, it.start, it.end) for it in second.offers] == [("beta", 3 * SECOND, 6 * SECOND)]
    assert times(second, Kind.PAY) == [("alpha", 3.0)]
    assert times(second, Kind.AGGREGATE) == [("alpha", 3.0)]
    assert times(third, Kind.PAY) == [("beta", 6.0)]
    assert times(third, Kind.AGGREGATE) == [("beta", 6.0)]  # as the period ends
    assert [it.end for it in (first, second, third, fourth)] == [2 * SECOND, 4 * SECOND, 6 * SECOND, 8 * SECOND]
    assert [it.income for it in [market.ledger]] == [[9_000_000]]


def test_offers_expire_when_the_period_ends_at_that_instant_too(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Work of 2 seconds ends with the period: the core is free for the offers of the next one."""
    market = market_with("fedasync", "fedasync", clock=Durations(0.015, 0.5, period=2.0))
    first, second = play(market, {"alpha": make_offer((0, 5.0)), "beta": make_offer((0, 4.0))}, {})
    assert [it.outcome for it in first.offers] == [Outcome.SERVED, Outcome.OUTBID]
    assert times(first, Kind.PAY) == [("alpha", 2.0)]
    assert times(second, Kind.AWARD) == []


def test_what_happens_as_the_period_ends_does_not_happen_again_as_the_next_one_begins(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Training ends with the period, at 2 seconds; the update arrives at 2.5."""
    market = market_with("fedasync", clock=Durations(0.02, 0.5, period=2.0))
    first, second = play(market, {"alpha": make_offer((0, 5.0))}, {})
    assert (times(first, Kind.TRAIN_END), times(second, Kind.TRAIN_END)) == ([("alpha", 2.0)], [])
    assert times(second, Kind.UPLOAD) == [("alpha", 2.5)]


def test_what_is_set_aside_cannot_be_spent_and_lapses_if_nothing_is_delivered(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", clock=Durations(0.025, 0.5, deadline=2.5, period=2.0))
    [first] = play(market, {"alpha": make_offer((0, 5.0))})
    account = market.ledger.accounts["alpha"]
    assert [(it.outcome, it.paid, it.end) for it in first.offers] == [(Outcome.DROPPED, None, 2_500_000)]
    assert (account.committed, account.lapsed) == (5_000_000, 15_000_000)
    # the service does not know yet that nothing will come
    assert (first.feedback["alpha"].served.tolist(), first.feedback["alpha"].dropped.tolist()) == ([True], [False])
    [second] = play(market, {})
    assert times(second, Kind.TRAIN_END) == [("alpha", 2.5)]
    assert (account.committed, account.lapsed, account.paid) == (0, 40_000_000, 0)
    assert second.models == ()


def test_staleness_counts_the_models_made_since_the_client_began(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Clients of speed 1 take 3 seconds; those of speed 5 take one, and each makes a model meanwhile."""
    market = market_with("fedasync", count=8, speeds=(1.0, 5.0))
    fast = np.flatnonzero(market.population.speed == 5.0)
    assert 0 < len(fast) < 8
    everybody = make_offer(*((client, 2.1) for client in range(8)))
    first, second = play(market, {"alpha": everybody}, {})
    made = [(it.sim_time / SECOND, it.updates, it.mean_staleness, it.at_work) for it in (*first.models, *second.models)]
    # those of one instant arrive one after another, too
    assert made == [(1.0 if n < len(fast) else 3.0, 1, float(n), 7 - n) for n in range(8)]


@pytest.mark.parametrize("speeds", [(1.0, 5.0), (1.0, 1.0, 5.0)])  # more that are waited for than late, and fewer
def test_who_waits_for_the_first_pays_the_late_and_takes_nothing_from_them(
    speeds: tuple[float, ...], market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """The fast deliver at 1 s, and again at 3 s, when the slow deliver, too: these began with an older model."""
    fast = np.flatnonzero(market_with("wait-for-all", count=8, speeds=speeds).population.speed == 5.0).tolist()
    assert 0 < len(fast) < 8
    market = market_with(TRIGGERS.create("wait-for-all", first=len(fast)), count=8, speeds=speeds)
    [first] = play(market, {"alpha": make_offer(*((client, 2.1) for client in range(8)))})
    assert np.flatnonzero(market.open_round()["alpha"].available).tolist() == fast
    second = market.close_round({"alpha": make_offer(*((client, 2.1) for client in fast))})
    made = [(it.sim_time / SECOND, it.updates, it.max_staleness, it.at_work) for it in (*first.models, *second.models)]
    assert made == [(1.0, len(fast), 0, 8 - len(fast)), (3.0, len(fast), 0, 0)]
    assert market.ledger.accounts["alpha"].paid == (8 + len(fast)) * 2_100_000


def test_who_waits_for_all_can_have_nobody_until_then(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("wait-for-all", "fedbuff", count=2)
    play(market, {"alpha": make_offer((0, 5.0)), "beta": make_offer((1, 5.0))})
    seen = market.open_round()
    assert {name: it.available.tolist() for name, it in seen.items()} == {
        "alpha": [False, False], "beta": [True, False]  # who works for beta cannot be had twice
    }  # fmt: skip
    progress = seen["beta"].progress
    assert progress is not None
    assert (progress.time, progress.models, progress.at_work, progress.staleness) == (2.0, 0, 1, 0.0)


def test_after_the_last_period_those_at_work_are_waited_for_and_paid(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", rounds=1)
    [only] = play(market, {"alpha": make_offer((0, 5.0))})
    assert market.finished
    assert (only.end, market.now) == (2 * SECOND, 3 * SECOND)
    assert (times(only, Kind.PAY), only.models) == ([("alpha", 3.0)], ())
    assert market.ledger.accounts["alpha"].paid == 5_000_000


def test_feedback_says_what_is_promised_and_later_what_came_of_it(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Of two clients at work from 0 to 3 s, beta's misses nothing; alpha's work is in the state of a market, too."""
    market, again = (market_with("fedasync", "semi-async", rounds=3, count=3) for _ in range(2))
    [first] = play(market, {"alpha": make_offer((2, 2.5), (0, 5.0)), "beta": make_offer((0, 4.0))})
    told = first.feedback["alpha"]
    assert told.promised is not None
    assert (told.served.tolist(), told.paid.tolist(), told.promised.tolist()) == ([True] * 2, [0.0] * 2, [2.5, 5.0])
    assert (told.completed, np.isnan(told.losses).all()) == ((), True)
    again.federation.restore(market.federation.state())
    again.restore(json.loads(json.dumps(market.state())))
    [second], [resumed] = play(market, {"beta": make_offer((0, 4.0))}), play(again, {"beta": make_offer((0, 4.0))})
    done = second.feedback["alpha"].completed
    assert [(it.round, it.client, it.promised, it.paid) for it in done] == [(1, 2, 2.5, 2.5), (1, 0, 5.0, 5.0)]
    assert not np.isnan([it.loss for it in done]).any()
    assert repr(resumed.feedback) == repr(second.feedback)
    assert second.feedback["beta"].promised is not None
    assert second.feedback["beta"].promised.tolist() == [4.0]
    [third] = play(market, {})  # the market waits for nobody who has delivered in time
    assert ([*third.feedback["alpha"].completed], [it.client for it in third.feedback["beta"].completed]) == ([], [0])


def test_feedback_says_that_nothing_came_of_an_earlier_offer(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", clock=Durations(0.025, 0.5, deadline=2.5, period=2.0))
    _, second = play(market, {"alpha": make_offer((0, 5.0))}, {})
    [lost] = second.feedback["alpha"].completed
    assert (lost.promised, lost.paid, np.isnan(lost.loss)) == (5.0, 0.0, True)


def test_work_that_ends_with_its_period_is_told_once(market_with: Callable[..., Market], make_offer: MakeOffer) -> None:
    market = market_with("fedasync", clock=Durations(0.015, 0.5, period=2.0))  # 2 seconds
    first, second = play(market, {"alpha": make_offer((0, 5.0))}, {})
    told = first.feedback["alpha"]
    assert told.promised is not None
    assert (told.paid.tolist(), told.promised.tolist(), told.completed) == ([5.0], [0.0], ())
    assert second.feedback["alpha"].completed == ()


def test_a_period_ends_when_a_core_comes_free_and_services_decide_again(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", "semi-async", clock=replace(CLOCK, decide=("free",)), rounds=5)
    five, four = make_offer((0, 5.0)), make_offer((0, 4.0))
    reports = play(market, {"alpha": five, "beta": four}, {"beta": four}, {"beta": four})
    # at 3 s the client has worked for alpha; what beta offered at 2 s has expired, and it offers again
    assert [(it.start, it.end) for it in reports] == [
        (0, 2 * SECOND),
        (2 * SECOND, 3 * SECOND),
        (3 * SECOND, 4 * SECOND),
    ]
    assert [(it.outcome, it.start) for it in reports[1].offers] == [(Outcome.OUTBID, None)]
    assert [(it.outcome, it.start) for it in reports[2].offers] == [(Outcome.SERVED, 3 * SECOND)]
    seen = market.open_round()["beta"].progress
    assert seen is not None
    assert (seen.time, seen.at_work, seen.since) == (4.0, 1, 1.0)


def test_a_service_that_makes_a_model_lets_all_decide_knowing_it(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Two clients work for alpha until 3 s, the second of them for beta, too, whose models are due at slots' ends."""
    clock = replace(CLOCK, decide=("model",))
    market = market_with("wait-for-all", "semi-async", clock=clock, rounds=4, count=2, cores=2)
    both = make_offer((0, 5.0), (1, 5.0))
    first, second, third = play(market, {"alpha": both, "beta": make_offer((1, 5.0))}, {}, {})
    assert [it.end / SECOND for it in (first, second, third)] == [2.0, 3.0, 4.0]
    assert [(it.service, it.sim_time / SECOND) for it in second.models] == [("alpha", 3.0)]
    assert [(it.service, it.sim_time / SECOND) for it in third.models] == [("beta", 4.0)]
    accuracy = [{it.service: it.accuracy for it in report.services} for report in (first, second, third)]
    assert accuracy[0]["alpha"] < accuracy[1]["alpha"] == accuracy[2]["alpha"]


def test_a_core_that_comes_free_is_no_model(market_with: Callable[..., Market], make_offer: MakeOffer) -> None:
    market = market_with("semi-async", clock=replace(CLOCK, decide=("model",)))
    first, second = play(market, {"alpha": make_offer((0, 5.0))}, {})  # the work ends at 3 s, the model is of 4 s
    assert (first.end, second.end) == (2 * SECOND, 4 * SECOND)


def test_a_budget_comes_in_by_the_second_up_to_a_whole_one_where_events_end_periods(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """20 in 2 seconds. What is spent at 0 s is there again at 2 s, and half of what is spent then at 3 s."""
    market = market_with("fedasync", clock=replace(CLOCK, decide=("free",)), rounds=6, count=2)
    play(market, {"alpha": make_offer((0, 20.0))})
    assert market.open_round()["alpha"].budget == 20.0
    market.close_round({"alpha": make_offer((1, 20.0))})
    assert (market.now, market.open_round()["alpha"].budget) == (3 * SECOND, 10.0)
    market.close_round({"alpha": make_offer((0, 4.0))})
    assert (market.now, market.open_round()["alpha"].budget) == (4 * SECOND, 16.0)
    market.close_round({"alpha": Offer.none()})
    assert (market.now, market.open_round()["alpha"].budget) == (5 * SECOND, 20.0)  # and no more


@given(st.integers(0, 10**12), st.integers(1, 10**7), st.lists(st.floats(0, 1, exclude_max=True), max_size=6))
def test_what_comes_in_over_whole_slots_is_the_budget_to_the_micro_unit(
    budget: int, slot: int, parts: list[float]
) -> None:
    names, triggers, federation = ["alpha"], [TRIGGERS.create("fedasync")], SurrogateFederation({"alpha": CURVE}, 0)
    clock = Durations(0.0, 0.0, period=slot / SECOND)
    state = Ongoing(names, triggers, federation, clock, 1, Clock()).state()
    instants = sorted({0, 2 * slot, *(int(part * 2 * slot) for part in parts)})
    came_in = 0
    for last, now in pairwise(instants):
        ongoing = Ongoing(names, triggers, federation, clock, 1, Clock())
        ongoing.restore({**state, "last": last}, Clock(now))
        came_in += ongoing.comes_in(budget, 1, now)
    assert came_in == 2 * budget


def test_who_arrives_has_a_whole_budget_also_where_the_round_is_opened_again(
    make_market: MakeMarket, make_offer: MakeOffer, plain_service: ServiceSpec
) -> None:
    """Of beta's budget half has come in since 3 s, when the period before its first one began."""
    services = replace(plain_service, name="alpha"), replace(plain_service, name="beta", arrival=3)

    def make() -> Market:
        federation = SurrogateFederation(dict.fromkeys(("alpha", "beta"), CURVE), 0)
        clock, triggers = replace(CLOCK, decide=("free",)), [TRIGGERS.create("fedasync") for _ in services]
        return make_market(services, timeline=clock, federation=federation, triggers=triggers, count=1)

    market = make()
    play(market, {"alpha": make_offer((0, 5.0))}, {}, {})
    assert (market.now, market.open_round()["beta"].budget) == (4 * SECOND, 20.0)
    again = make()
    again.federation.restore(market.federation.state())
    again.restore(market.state())
    assert again.open_round()["beta"].budget == 20.0


def test_a_market_is_over_with_its_last_slot_however_many_rounds_were_played(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", clock=replace(CLOCK, decide=("free",), slots=2), rounds=9)
    first, second, third = play(market, {"alpha": make_offer((0, 5.0))}, {}, {"alpha": make_offer((0, 5.0))})
    assert [it.last for it in (first, second, third)] == [False, False, True]
    assert (market.finished, market.slots_left(third)) == (True, 0.0)
    assert (third.end, market.now) == (4 * SECOND, 6 * SECOND)  # who is at work at 4 s is waited for
    assert market.ledger.accounts["alpha"].paid == 10 * SECOND
    assert market.ledger.accounts["alpha"].free == 0


def test_what_may_follow_a_round_is_known_in_slots(market_with: Callable[..., Market], make_offer: MakeOffer) -> None:
    market = market_with("fedasync", clock=replace(CLOCK, decide=("free",), slots=3), rounds=9)
    reports = play(market, {"alpha": make_offer((0, 5.0))}, {}, {"alpha": make_offer((0, 5.0))})
    assert [market.slots_left(it) for it in reports] == [2.0, 1.5, 1.0]
    unlimited = market_with("fedasync", clock=replace(CLOCK, decide=("free",)), rounds=9)
    assert unlimited.slots_left(*play(unlimited, {})) == 8


def test_waiting_for_clients_once_all_services_have_left_takes_no_slots_from_them(
    make_market: MakeMarket, make_offer: MakeOffer, plain_service: ServiceSpec
) -> None:
    services = [replace(plain_service, name="alpha", last=1)]
    federation, triggers = SurrogateFederation({"alpha": CURVE}, 0), [TRIGGERS.create("fedasync")]
    clock = replace(CLOCK, decide=("free",), slots=3)
    market = make_market(services, timeline=clock, federation=federation, triggers=triggers, count=1)
    [report] = play(market, {"alpha": make_offer((0, 5.0))})
    assert (market.finished, report.end, market.now) == (True, 2 * SECOND, 3 * SECOND)
    assert market.slots_left(report) == 2.0


def test_who_leaves_in_a_slot_is_not_back_after_an_event_in_it(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """All clients leave in every slot: what they begin at its start they lose, and nobody begins anything later."""
    clock = replace(CLOCK, decide=("free",))
    market = market_with("fedasync", clock=clock, rounds=9, count=6, departure_rate=1.0)
    while not market.finished:
        free = np.flatnonzero(market.open_round()["alpha"].available)
        report = market.close_round({"alpha": make_offer(*((client, 2.1) for client in free))})
        assert {it.start for it in report.offers} <= ({report.start} if report.start % (2 * SECOND) == 0 else {None})
    assert market.now > 2 * SECOND


def test_more_cannot_be_set_aside_than_is_held(market_with: Callable[..., Market]) -> None:
    ledger = market_with("fedasync").ledger
    with pytest.raises(LedgerError, match="committed with"):
        ledger.commit("alpha", 1)
    with pytest.raises(LedgerError, match="committed"):
        ledger.pay_committed("alpha", 0, 1)


def test_a_mechanism_sees_the_cores_that_are_free_whenever_it_clears(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Alpha's client works from 0 to 3 s, beta's from 2 to 5 s, gamma's from 3 to 6 s; from 4 s on it has one core."""

    class Watching(PayAsOffered):
        by_client = True

        def clear(self, book: Book) -> Clearing:
            seen.append((book.services.tolist(), np.broadcast_to(book.capacity, 1).tolist()))
            return super().clear(book)

    seen: list[tuple[list[int], list[int]]] = []
    less = Change(3, cores=1)
    market = market_with("fedasync", "fedasync", "fedasync", cores=2, mechanism=Watching(), interventions=[less])
    alpha, beta, gamma = make_offer((0, 3.0)), make_offer((0, 5.0)), make_offer((0, 4.0))
    play(market, {"alpha": alpha}, {"beta": beta, "gamma": gamma}, {"alpha": alpha}, {"alpha": alpha})
    # in the third period more cores are at work than there are, and then as many
    assert seen == [([0], [2]), ([1, 2], [1]), ([2], [1]), ([0], [1])]


def online(*intervals: tuple[int, float, float], clients: int = 1, ends_work: bool = False) -> OnlineTimes:
    """Clients that come and go at these seconds, in periods of two."""
    rows = [(client, int(begin * SECOND), int(end * SECOND)) for client, begin, end in intervals]
    return OnlineTimes(clients, np.array(rows, dtype=np.int64), 2 * SECOND, ends_work=ends_work)


def test_who_comes_in_the_middle_of_a_period_takes_the_best_offer_that_stands(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", "fedasync", availability=online((0, 0.75, 9.0)))
    first, second = play(market, {"alpha": make_offer((0, 4.0)), "beta": make_offer((0, 5.0))}, {})
    assert [(it.service, it.outcome, it.start, it.end) for it in first.offers] == [
        ("alpha", Outcome.OUTBID, None, None), ("beta", Outcome.SERVED, 750_000, 3_750_000)
    ]  # fmt: skip
    assert times(first, Kind.AWARD) == times(first, Kind.TRAIN_START) == [("beta", 0.75)]
    assert times(second, Kind.PAY) == [("beta", 3.75)]


def test_who_goes_takes_no_new_work_until_it_comes_again(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Work of 0.5 seconds. The client goes at 0.5, the instant at which it is done, and comes again at 1.25."""
    clock = Durations(0.0, 0.5, period=2.0)
    market = market_with(
        "fedasync", "fedasync", clock=clock, availability=online((0, 0.0, 0.5), (0, 1.25, 1.5), (0, 2.0, 3.0))
    )
    first, second = play(
        market, {"alpha": make_offer((0, 5.0)), "beta": make_offer((0, 4.0))}, {"alpha": make_offer((0, 5.0))}
    )
    assert [(it.service, it.start, it.end) for it in (*first.offers, *second.offers)] == [
        ("alpha", 0, 500_000), ("beta", 1_250_000, 1_750_000), ("alpha", 2_000_000, 2_500_000)
    ]  # fmt: skip


def test_work_goes_on_without_a_client_or_is_lost_and_not_paid(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Work of 3 seconds, of a client that goes after 3, or a microsecond before that."""
    for end, ends_work, outcome in (
        (2.999999, False, Outcome.SERVED), (3.0, True, Outcome.SERVED), (2.999999, True, Outcome.DROPPED)
    ):  # fmt: skip
        market = market_with("fedasync", availability=online((0, 0.0, end), ends_work=ends_work))
        [first, second] = play(market, {"alpha": make_offer((0, 5.0))}, {})
        served = outcome is Outcome.SERVED
        [offer], account = first.offers, market.ledger.accounts["alpha"]
        assert (offer.outcome, offer.paid, offer.end) == (
            outcome, 5_000_000 if served else None, 3_000_000 if served else 2_999_999
        )  # fmt: skip
        assert (account.paid, account.committed, len(second.models)) == (5_000_000 * served, 0, served)


def test_a_period_has_the_clients_that_are_there_at_some_time_in_it(market_with: Callable[..., Market]) -> None:
    there = online((0, 0.0, 2.0), (1, 2.0, 2.5), (2, 3.999999, 4.0), (3, 1.999999, 4.000001), clients=5)
    market = market_with("fedasync", count=5, availability=there)
    seen = []
    for _ in range(3):
        seen.append(sorted(market.open_round()["alpha"].offline))
        market.close_round({"alpha": Offer.none()})
    assert seen == [[1, 2, 4], [0, 4], [0, 1, 2, 4]]


def test_who_comes_as_the_period_ends_is_there_for_the_offers_of_the_next_one(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    market = market_with("fedasync", count=2, availability=online((0, 2.0, 9.0), (1, 0.0, 9.0), clients=2))
    first, second = play(market, {"alpha": make_offer((1, 5.0))}, {"alpha": make_offer((0, 5.0))})
    assert times(second, Kind.AWARD) == [("alpha", 2.0)]
    assert len(first.offers) == 1


def test_what_has_happened_before_a_market_is_restored_does_not_happen_again(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Training ends with the period, as the market's state is taken; the update arrives at 2.5 seconds."""
    clock = Durations(0.02, 0.5, period=2.0)
    market, again = (market_with("fedasync", clock=clock) for _ in range(2))
    play(market, {"alpha": make_offer((0, 5.0))})
    again.federation.restore(market.federation.state())
    again.restore(market.state())
    [one], [other] = play(market, {}), play(again, {})
    assert one.events == other.events
    assert times(other, Kind.UPLOAD) == [("alpha", 2.5)]


def test_updates_of_one_instant_arrive_in_the_order_in_which_they_were_trained(
    make_market: MakeMarket, make_offer: MakeOffer, plain_service: ServiceSpec
) -> None:
    """Alpha trains for 2 seconds and sends nothing; beta, whose job begins second, for 1, and sends 1 million bits."""
    alpha = replace(plain_service, name="alpha", local_epochs=2)
    beta = replace(plain_service, name="beta", model_bytes=125_000)
    triggers, curves = [TRIGGERS.create("fedasync")] * 2, SurrogateFederation({"alpha": CURVE, "beta": CURVE}, 0)
    clock, people = Durations(0.01, 0.0, period=4.0), {"count": 1, "cores": 2, "uploads": (1.0,)}
    market = make_market([alpha, beta], timeline=clock, federation=curves, triggers=triggers, **people)
    [report] = play(market, {"alpha": make_offer((0, 5.0)), "beta": make_offer((0, 4.0))})
    assert times(report, Kind.TRAIN_START) == [("alpha", 0.0), ("beta", 0.0)]
    assert times(report, Kind.UPLOAD) == [("beta", 2.0), ("alpha", 2.0)]


def test_the_mean_staleness_is_that_of_clients_who_are_still_at_work(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Clients of speed 5 deliver after a second, and each makes a model; the others are at work with the first one."""
    market = market_with("fedasync", count=8, speeds=(0.2, 5.0))
    fast = np.flatnonzero(market.population.speed == 5.0).tolist()
    both = make_offer(*((client, 2.1) for client in range(8))), make_offer(*((client, 2.1) for client in fast))
    play(market, *({"alpha": offer} for offer in both))
    late = market.open_round()["alpha"].progress
    assert late is not None
    assert (late.models, late.at_work, late.staleness) == (2 * len(fast), 8 - len(fast), 2.0 * len(fast))


def test_a_client_that_comes_is_a_core_come_free_after_which_services_decide(
    market_with: Callable[..., Market], make_offer: MakeOffer
) -> None:
    """Nobody has made an offer to the second client, which comes at 0.75; the third one is there from the start."""
    there = online((0, 0.0, 9.0), (1, 0.75, 9.0), (2, 0.0, 9.0), clients=3)
    market = market_with("fedasync", clock=replace(CLOCK, decide=("free",)), count=3, availability=there)
    first, second = play(market, {"alpha": make_offer((0, 5.0))}, {"alpha": make_offer((1, 5.0))})
    assert (first.end, times(second, Kind.AWARD)) == (750_000, [("alpha", 0.75)])
    assert second.end == 2 * SECOND
