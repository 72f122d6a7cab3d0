"""Sums over the offers of a run: who outbid whom, and what clients earned, up to any of its rounds."""

from collections.abc import Callable

import numpy as np
import pytest

from des.log_records import Outcome
from flmarket.analysis.what_if.decisive_rounds import decisive
from tui.state.bid_verdicts import RoundBook
from tui.state.compared_runs import result_at
from tui.state.offer_sums import OfferSums, Sums
from tui.state.watched_run import Session

Play = Callable[..., Session]


def sums_of(session: Session) -> OfferSums:
    assert session.scenario is not None
    names = [service.name for service in session.scenario.services]
    return OfferSums(session.history, names, session.scenario.clients.count)


def counted_anew(session: Session, last: int) -> Sums:
    """The sums, from the order books of all rounds."""
    assert session.scenario is not None
    assert session.world is not None
    names = [service.name for service in session.scenario.services]
    sums = Sums.zero(len(names), session.scenario.clients.count)
    for number in range(1, last + 1):
        logged = session.history[number]
        book = RoundBook(logged, session.world)
        for offer in logged.offers:
            m = names.index(offer.service)
            if offer.outcome is Outcome.SERVED:
                sums.earned[offer.client] += offer.paid or 0
                sums.jobs[offer.client] += 1
            elif offer.outcome is Outcome.OUTBID:
                lowest = book.holders[offer.client][-1]
                sums.times[names.index(lowest.service), m] += 1
                sums.margin[names.index(lowest.service), m] += lowest.payment - offer.payment
    return sums


def same(one: Sums, other: Sums) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("times", "margin", "earned", "jobs")
    )


def test_sums_are_those_of_the_order_books_at_every_round_in_any_order(
    play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.state.offer_sums.STEP", 3)
    session = play_small()
    sums = sums_of(session)
    assert sums.read(12)
    assert sums.at(12).times.sum() > 0
    for number in (12, 11, 3, 4, 12, 1, 0, 7):
        found = sums.at(number)
        assert found.round == number
        assert same(found, counted_anew(session, number)), number


def test_sums_agree_with_the_rounds_table(play_small: Play) -> None:
    session = play_small()
    of_run = sums_of(session)
    of_run.read(12)
    sums = of_run.at(12)
    rows = [row for logged in session.history for row in logged.services]
    assert sums.times.sum() == sum(row.refused for row in rows)  # none is dropped
    assert sums.earned.sum() == sum(row.spent for row in rows)
    assert sums.jobs.sum() == sum(row.served for row in rows)


def test_an_offer_that_was_outbid_by_several_counts_once(play_small: Play, scenario_text: str) -> None:
    session = play_small(scenario_text.replace("cores = 1", "cores = 2").replace('"random"', '"hqfa"'))
    sums = sums_of(session)
    sums.read(12)
    refused = sum(row.refused for logged in session.history for row in logged.services)
    assert sums.at(12).times.sum() == refused > 0
    assert same(sums.at(12), counted_anew(session, 12))


def test_a_long_run_is_read_in_pieces(play_small: Play) -> None:
    session = play_small()
    sums, pieces = sums_of(session), 1
    while not sums.read(12, most=10):
        assert len(sums) < 12
        pieces += 1
    assert pieces > 3
    assert same(sums.at(12), counted_anew(session, 12))


def test_the_decisive_rounds_are_exits_interventions_and_the_first_with_the_most_money_not_spent(
    play_small: Play, scenario_text: str
) -> None:
    intervention = '[[interventions]]\nround = 3\nkey = "clients.offline"\nvalue = [1]\n'
    session = play_small(scenario_text + intervention)
    found = decisive(result_at(session, 12))
    assert [event.round for event in found] == sorted(event.round for event in found)
    words = {event.words: event.round for event in found}
    assert words["alpha reaches its target and leaves"] == session.history.exits[0]
    assert words["intervention: clients.offline = [1]"] == 3
    for last in (5, 12):
        rounds = list(session.history)[:last]
        for m, name in enumerate(("alpha", "beta", "gamma")):
            left = [logged.services[m].offered - logged.services[m].spent for logged in rounds]
            decided = decisive(result_at(session, last))
            [worst] = [event for event in decided if event.words.startswith(f"worst round of {name}: ")]
            assert worst.round == 1 + left.index(max(left))
            row = rounds[worst.round - 1].services[m]
            expected = f"{row.refused} of {row.wanted} offers refused, {max(left) / 1e6:.2f} not spent"
            assert worst.words == f"worst round of {name}: {expected}"
    assert all(event.round <= 2 for event in decisive(result_at(session, 2)))
