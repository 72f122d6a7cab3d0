"""The rivalry of a run's services: sums over its rounds, at any of them."""

from collections.abc import Callable

import numpy as np
import pytest

from des.log_records import Outcome
from tui.state.order_book import Book
from tui.state.rivalry import Rivalry, Sums
from tui.state.summary import decisive, results
from tui.state.watched_run import Session

Play = Callable[..., Session]


def rivalry_of(session: Session, mechanism: str = "pay-as-offered") -> Rivalry:
    assert session.scenario is not None
    names = [service.name for service in session.scenario.services]
    return Rivalry(session.history, names, session.scenario.clients.count, mechanism)


def counted_anew(session: Session, last: int) -> Sums:
    """The sums, from the order books of all rounds."""
    assert session.scenario is not None
    assert session.world is not None
    names = [service.name for service in session.scenario.services]
    sums = Sums.zero(len(names), session.scenario.clients.count)
    for number in range(1, last + 1):
        logged = session.history[number]
        book = Book(logged, session.world)
        for offer in logged.offers:
            m = names.index(offer.service)
            if offer.outcome is Outcome.SERVED:
                sums.spent[m] += offer.paid or 0
                sums.served[m] += 1
                sums.earned[offer.client] += offer.paid or 0
                sums.jobs[offer.client] += 1
            elif offer.outcome is Outcome.OUTBID:
                sums.tied[m] += offer.payment
                sums.outbid[m] += 1
                lowest = book.holders[offer.client][-1]
                sums.times[names.index(lowest.service), m] += 1
                sums.margin[names.index(lowest.service), m] += lowest.payment - offer.payment
            else:
                sums.tied[m] += offer.payment
                sums.dropped[m] += 1
    return sums


def same(one: Sums, other: Sums) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("times", "margin", "spent", "tied", "served", "outbid", "dropped", "earned", "jobs")
    )


def test_sums_are_those_of_the_order_books_at_every_round_in_any_order(
    play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.state.rivalry.STEP", 3)
    session = play_small()
    rivalry = rivalry_of(session)
    assert rivalry.read(12)
    assert rivalry.at(12).times.sum() > 0
    for number in (12, 11, 3, 4, 12, 1, 0, 7):
        found = rivalry.at(number)
        assert found.round == number
        assert same(found, counted_anew(session, number)), number


def test_sums_agree_with_the_rounds_table(play_small: Play) -> None:
    session = play_small()
    rivalry = rivalry_of(session)
    rivalry.read(12)
    sums = rivalry.at(12)
    for m in range(3):
        rows = [logged.services[m] for logged in session.history]
        assert sums.spent[m] == sum(row.spent for row in rows)
        assert sums.spent[m] + sums.tied[m] == sum(row.offered for row in rows)
        assert sums.served[m] == sum(row.served for row in rows)
        assert sums.outbid[m] + sums.dropped[m] == sum(row.refused for row in rows)
    assert sums.earned.sum() == sums.spent.sum()
    assert sums.times.sum() == sums.outbid.sum()


def test_an_offer_that_was_outbid_by_several_counts_once(play_small: Play, scenario_text: str) -> None:
    session = play_small(scenario_text.replace("cores = 1", "cores = 2").replace('"random"', '"hqfa"'))
    rivalry = rivalry_of(session)
    rivalry.read(12)
    assert rivalry.at(12).times.sum() == rivalry.at(12).outbid.sum() > 0
    assert same(rivalry.at(12), counted_anew(session, 12))


def test_a_long_run_is_read_in_pieces(play_small: Play) -> None:
    session = play_small()
    rivalry, pieces = rivalry_of(session), 1
    while not rivalry.read(12, most=10):
        assert len(rivalry) < 12
        pieces += 1
    assert pieces > 3
    assert same(rivalry.at(12), counted_anew(session, 12))


def test_under_another_mechanism_nobody_is_said_to_have_outbid(play_small: Play) -> None:
    session = play_small()
    rivalry = rivalry_of(session, "second-price")
    rivalry.read(12)
    assert not rivalry.knows_rivals
    assert rivalry.at(12).times.sum() == 0
    assert rivalry.at(12).outbid.sum() > 0


def test_the_worst_round_is_the_first_with_the_most_money_in_refused_offers(play_small: Play) -> None:
    session = play_small()
    rivalry = rivalry_of(session)
    rivalry.read(12)
    rounds = list(session.history)
    for last in (1, 5, 12):
        sums = rivalry.at(last)
        for m, name in enumerate(rivalry.names):
            tied = [
                sum(offer.payment for offer in logged.offers if offer.service == name and offer.paid is None)
                for logged in rounds[:last]
            ]
            assert sums.highest[m] == max(tied)
            assert sums.worst[m] == (1 + tied.index(max(tied)) if max(tied) else 0)
    assert not rivalry.at(0).worst.any()


def test_the_summary_says_who_reached_what_and_which_rounds_decided(play_small: Play, scenario_text: str) -> None:
    shock = '[[interventions]]\nround = 3\nkey = "clients.offline"\nvalue = [1]\n'
    session = play_small(scenario_text + shock)
    rivalry = rivalry_of(session)
    rivalry.read(12)
    alpha, beta, _ = results(session.history, rivalry, 12)
    exit_ = session.history.exits[0]
    assert (alpha.reached, beta.reached) == (exit_, None)
    assert alpha.spent == sum(logged.services[0].spent for logged in session.history) / 1e6
    assert alpha.per_point == alpha.spent / (100 * alpha.accuracy)
    late = play_small(scenario_text.replace('name = "alpha"', 'name = "alpha"\narrival = 3'))
    assert results(late.history, rivalry_of(late), 0) == []
    rivalry = rivalry_of(late)
    rivalry.read(12)
    assert results(late.history, rivalry, 12)[0].reached == late.history.exits[0]  # not counted from its arrival
    found = decisive(session.history, rivalry, session.scenario, 12)
    assert [event.round for event in found] == sorted(event.round for event in found)
    words = {event.words: event.round for event in found}
    assert words["alpha reaches its target and leaves"] == exit_
    assert words["shock: clients.offline = [1]"] == 3
    worst = next(event for event in found if event.words.startswith("worst of beta: "))
    row = session.history[worst.round].services[1]
    assert f"{row.refused} of {row.wanted} offers refused" in worst.words
    assert all(event.round <= 2 for event in decisive(session.history, rivalry, session.scenario, 2))
    assert results(session.history, rivalry, 0) == []
