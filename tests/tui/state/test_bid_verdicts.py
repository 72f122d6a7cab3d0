"""Reasons in words, and money told apart."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from textual.app import App

from des.allocation import NO_CORE, allocate
from des.log_records import Outcome
from des.mechanism import MECHANISMS, Clearing, Mechanism
from des.observation import Status
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.explain import Explanation
from flmarket.analysis.what_if.reasons import cash
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from support.runs import played
from support.screens import Play, Runner, play_headlessly, start_of
from tui.panels.client_grid import ClientGrid
from tui.state import bid_verdicts
from tui.state.bid_verdicts import BidVerdict, RoundBook
from tui.state.feeds import DirectoryFeed
from tui.state.history import History
from tui.state.moment import Moment, after, before
from tui.state.pace import faster
from tui.state.watched_run import Session


@pytest.mark.parametrize(
    ("amount", "beside", "text"),
    [
        (4_600_000, None, "4.60"),
        (4_600_000, 4_750_000, "4.60"),
        (4_600_000, 4_601_000, "4.600"),
        (4_600_000, 4_600_001, "4.600000"),
        (0, None, "0.00"),
        (1, None, "0.000001"),
    ],
)
def test_money_has_as_many_decimals_as_it_takes(amount: int, beside: int | None, text: str) -> None:
    assert cash(amount, beside) == text


def test_every_bid_has_a_verdict_and_a_reason_that_fits_the_log(play_small: Play) -> None:
    session = play_small()
    seen = set()
    for logged in session.history:
        book = RoundBook(logged, session.world)
        outcomes = {(offer.service, offer.client): offer for offer in logged.offers}
        for m, service in enumerate(logged.services):
            for line in (book.line(m, client) for client in book.clients_of(m)):
                offer = outcomes.get((service.service, line.client))
                seen.add(line.verdict)
                assert line.reason
                assert (offer is None) == (line.payment is None)
                if offer is not None:
                    # The book's own numbers are drawn anew from the seed; the log has the same ones.
                    for name in ("data_size", "emd", "dqi", "bid"):
                        assert getattr(line, name) == getattr(offer, name)
                    assert (line.verdict is BidVerdict.SERVED) == (offer.outcome is Outcome.SERVED)
                elif line.verdict is BidVerdict.MISFIT:
                    assert line.bid > service.budget - service.offered
    assert {BidVerdict.SERVED, BidVerdict.OUTBID, BidVerdict.MISFIT, BidVerdict.LEFT} <= seen


@pytest.mark.parametrize("seed", [3, 8])
def test_what_services_left_on_the_table_is_what_explain_says_of_the_logs(
    small: Path, fake_runner: Runner, seed: int
) -> None:
    play_headlessly(start_of(small, seed=seed), fake_runner("formula"))
    [directory] = (small / "runs").glob("*/*/seed-*")
    logs, session = Logs.read_whole(RunDirectory(directory)), Session("small")
    DirectoryFeed(session, directory).read()
    missed = 0.0
    for logged in session.history:
        for row, left in zip(logged.services, session.book(logged).left, strict=True):
            if row.status is Status.LEFT:
                assert left is None
                continue
            told = Explanation(logs, logged.number, row.service)
            served = [it.dqi for it in logged.offers if (it.service, it.outcome) == (row.service, Outcome.SERVED)]
            assert left == pytest.approx(told.possible().quality - sum(served), abs=1e-12)
            missed += left
    assert missed > 0.1


def test_why_work_was_lost_is_what_explain_says(tmp_path: Path) -> None:
    """By going offline, or by the deadline."""
    changes = {
        "training.backend": "surrogate", "rounds": 8, "clients.speed": [0.3, 1.0, 3.0], "timeline.mode": "continuous",
        "timeline.slot": 1.0, "timeline.deadline": 2.0, "clients.presence": {"stay_seconds": 2.0, "away_seconds": 1.5},
        "clients.offline_work": "lost",
    }  # fmt: skip
    run = played(load("quickstart", changes), tmp_path)
    logs, session, said = Logs.read_whole(run), Session("quickstart"), set[str]()
    DirectoryFeed(session, run.path).read()
    for logged in session.history:
        book = session.book(logged)
        for m, row in enumerate(logged.services):
            lost = logs.offers_of(logged.number, row.service).query("outcome == 'dropped'")
            for it in lost.itertuples():
                why = book.line(m, it.client).reason
                assert why == Explanation(logs, logged.number, row.service).why(it)
                said.add(why.partition(" at ")[0])
    assert said == {
        "awarded a core, but it went offline", "awarded a core, but its update did not arrive in time; not paid",
    }  # fmt: skip


def test_what_services_left_is_worked_out_unasked_in_small_markets_alone(
    play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play_small()
    first = session.history[1]
    assert None not in RoundBook(first, session.world).left
    monkeypatch.setattr(bid_verdicts, "MOST_UNASKED", 23)  # of 8 clients and 3 services
    assert set(RoundBook(first, session.world).left) == {None}


def test_the_best_set_is_that_of_trying_all_sets(play_small: Play) -> None:
    """With one core, a client is won for sure at its bid, or just above the highest payment of a rival."""
    session = play_small()
    for logged in list(session.history)[:4]:
        book = RoundBook(logged, session.world)
        for m, service in enumerate(logged.services):
            rivals = [
                [
                    offer.payment
                    for offer in logged.offers
                    if (offer.client, offer.service != service.service) == (c, True)
                ]
                for c in range(8)
            ]
            price = [max(int(book.qualities.bid[m, c]), *(it + 1 for it in rivals[c]), 0) for c in range(8)]
            worth = [max(float(book.qualities.dqi[m, c]), 0.0) for c in range(8)]
            sets = (found for size in range(9) for found in combinations(range(8), size))
            affordable = [one for one in sets if sum(price[c] for c in one) <= service.budget]
            assert book.has_best(m) == (service.status != "left")
            if not book.has_best(m):
                continue
            best = book.best(m)
            assert [book.price(m, c) for c in range(8)] == best.prices.tolist() == price
            assert best.quality == pytest.approx(max(sum(worth[c] for c in one) for one in affordable))
            assert best.cost == sum(price[c] for c in best.clients)


class OddClientsOnly(Mechanism):
    """Clients with an odd number serve the highest payments and get half of what these are over the bid."""

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(np.where(book.clients % 2, core, NO_CORE), book.bids + (book.payments - book.bids) // 2)


class Shown(App[None]):
    def compose(self):
        yield ClientGrid()


async def test_another_mechanism_s_reasons_are_not_the_paper_s(play_small: Play, scenario_text: str) -> None:
    """It may refuse an offer for a free core, and ask less than was offered."""
    MECHANISMS.register("odd-clients", OddClientsOnly)
    text = scenario_text.replace("lcfa", "pacing") + '\n[market]\nmechanism = "odd-clients"\n'
    session = play_small(text)
    served, refused = [], []
    for logged in session.history:
        book = RoundBook(logged, session.world)
        assert not {client for client in book.holders if client % 2 == 0}
        for offer in logged.offers:
            line = book.line([row.service for row in logged.services].index(offer.service), offer.client)
            (served if offer.outcome is Outcome.SERVED else refused).append((offer, line.reason))
    assert {reason for _, reason in refused} == {"refused by the mechanism odd-clients"}
    assert any(offer.paid < offer.payment for offer, _ in served)
    for offer, reason in served:
        over = offer.paid - offer.bid
        price = f"paid {cash(over, offer.paid)} over its bid" if over else "paid its bid"
        assert reason == f"core {offer.core}, {price}"
    # The grid shows the price that was paid.
    logged, offer = next(
        (logged, offer)
        for logged in session.history
        for offer in logged.offers
        if offer.paid is not None and cash(offer.paid) != cash(offer.payment)
    )
    async with Shown().run_test(size=(120, 40)) as pilot:
        grid = pilot.app.query_one(ClientGrid)
        grid.show(Moment(session, logged.number))
        columns = grid.line(offer.client)[1].plain.split("●")
        assert f"{offer.core} {cash(offer.paid)}" in [" ".join(column.split()[:2]) for column in columns]


def test_offline_clients_are_said_to_be(play_small: Play, scenario_text: str) -> None:
    interventions = '\n[[interventions]]\nround = 2\nkey = "clients.offline"\nvalue = [5]\n'
    session = play_small(scenario_text + interventions)
    assert RoundBook(session.history[1], session.world).line(0, 5).verdict is not BidVerdict.OFFLINE
    line = RoundBook(session.history[2], session.world).line(0, 5)
    assert (line.verdict, line.reason) == (BidVerdict.OFFLINE, "the client is offline in this round")


def test_places_in_a_history(play_small: Play) -> None:
    history = play_small().history
    assert isinstance(history, History)
    assert (after([2, 5], 2), after([2, 5], 5), before([2, 5], 5), before([2, 5], 2)) == (5, None, 2, None)
    xs, ys = history.series(1, "accuracy", 12, points=4)
    assert (xs[0], xs[-1], len(xs)) == (1.0, 12.0, 5)
    assert ys[-1] == history[12].services[1].accuracy
    assert history.exit_of(0, 12) == history.exits[0]
    assert history.exit_of(0, history.exits[0] - 1) is None
    assert history.column("spent", 3)[:, 1].tolist() == [history[n].services[1].spent / 1e6 for n in (1, 2, 3)]
    assert (faster(1, 1), faster(10, 1), faster(None, 1), faster(0.25, -1)) == (2, None, None, 0.25)
