"""Markets in lockstep are the markets that SimPy plays: equal observations, and for equal offers equal outcomes."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.clients.data_tables import Lasting
from des.clients.disclosure import Disclosure
from des.log_records import Outcome, RoundReport
from des.market import Market
from des.mechanism import MECHANISMS, Book, Clearing, ClearingError, Mechanism
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from des.schedule import Change
from des.timeline import Durations
from fl.data.partition import Iid, Partition
from learning.lockstep.lockstep import STATUS, Closed, Lockstep, View
from learning.lockstep.market_kinds import ENDLESS, LockstepError
from learning.lockstep.offers import LockstepOfferError, Offers
from support.clients import changed
from support.markets import factory, kinds, plain
from support.tiers import examples

MARKUPS = np.array([0.0, 0.0, 0.000001, 0.5, 3.0])  # from a small set, so that ties are common


def any_offer(seen: Observation, rng: np.random.Generator) -> Offer:
    """Any offer within (4) and (5): some clients in any order, each paid its bid and a markup."""
    clients = rng.permutation(np.flatnonzero(seen.available))[: rng.integers(seen.clients + 1)]
    payments = to_micro(seen.own_bids[clients]) + to_micro(rng.choice(MARKUPS, len(clients)))
    affordable = np.cumsum(payments) <= to_micro(seen.budget)
    return Offer(clients[affordable], payments[affordable] / MICRO)


def assert_same_observation(markets: Lockstep, view: View, b: int, m: int, seen: Observation) -> None:
    services, clients = len(seen.services), seen.clients
    bids = np.where(view.asked[b, :, None], view.bids[b], 0)[:services, :clients]
    assert np.array_equal(bids, to_micro(seen.bids))
    assert np.array_equal(view.dqi[b, m, :clients], seen.dqi)
    assert np.array_equal(view.available[b, m], [*seen.available, *[False] * (view.bids.shape[2] - clients)])
    assert view.budget[b, m] == to_micro(seen.budget)
    assert (view.round[b], view.cores[b], markets.curves.accuracy[b, m]) == (seen.round, seen.cores, seen.accuracy)
    left = None if markets.kinds.total[b, m] == ENDLESS else markets.total_left[b, m] / MICRO
    assert left == seen.total_left


def assert_same_outcome(
    report: RoundReport, closed: Closed, markets: Lockstep, b: int, mine: np.ndarray, market: Market
) -> None:
    fate = closed.fate
    for row, at in zip(report.offers, mine, strict=True):
        assert fate.served[at] == (row.outcome is Outcome.SERVED)
        assert fate.awarded[at] == (row.outcome is not Outcome.OUTBID)
        assert row.paid in (None, fate.price[at])
    for m, service in enumerate(report.services):
        assert markets.curves.accuracy[b, m] == service.accuracy
        assert closed.reward[b, m] == service.reward
        assert STATUS[closed.status[b, m]] is service.status
        assert (closed.served[b, m], closed.spent[b, m]) == (service.served, service.spent)
        assert markets.paid[b, m] == market.ledger.accounts[service.service].paid


def together(parts: list[tuple[int, int, Offer]]) -> Offers:
    """The offers of services (b, m, offer), in order."""
    return Offers(
        np.repeat([b for b, _, _ in parts], [len(it.clients) for *_, it in parts]).astype(np.int64),
        np.repeat([m for _, m, _ in parts], [len(it.clients) for *_, it in parts]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *(it.clients for *_, it in parts)]),
        to_micro(np.concatenate([np.empty(0), *(it.payments for *_, it in parts)])),
    )


def assert_equal_play(kinds_: list[dict[str, Any]], of: list[int], seeds: list[int], rng: np.random.Generator) -> None:
    """Play markets in lockstep and one by one, with the same random offers, and compare every round."""
    makes = [factory(kind) for kind in kinds_]
    markets = Lockstep([makes[kind] for kind in of], seeds)
    alone = [makes[kind](seed) for kind, seed in zip(of, seeds, strict=True)]
    while not markets.finished.all():
        view = markets.open()
        parts, seen = [], {}
        for b, market in enumerate(alone):
            if market.finished:
                assert not view.asked[b].any()
                continue
            seen[b] = market.open_round()
            names = [spec.name for spec in market.services]
            assert [names[m] for m in np.flatnonzero(view.asked[b])] == list(seen[b])
            for name, observation in seen[b].items():
                m = names.index(name)
                assert_same_observation(markets, view, b, m, observation)
                parts.append((b, m, any_offer(observation, rng)))
        offers = together(parts)
        closed = markets.close(offers)
        for b in seen:
            market = alone[b]
            names = [spec.name for spec in market.services]
            made = {names[m]: offer for where, m, offer in parts if where == b}
            report = market.close_round(made if made else None)
            assert_same_outcome(report, closed, markets, b, np.flatnonzero(offers.market == b), market)
    assert all(market.finished for market in alone)


@examples(120)
@given(
    kinds_=st.lists(kinds(), min_size=1, max_size=3),
    of=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    seeds=st.lists(st.integers(0, 2**63), min_size=4, max_size=4),
    draws=st.integers(0, 2**32),
)
def test_markets_in_lockstep_are_the_markets_alone(
    kinds_: list[dict[str, Any]], of: list[int], seeds: list[int], draws: int
) -> None:
    of = [kind % len(kinds_) for kind in of]
    assert_equal_play(kinds_, of, seeds[: len(of)], np.random.default_rng(draws))


class FirstServed(Mechanism):
    """Each client serves whoever stands first in its book; ``less`` is what the price lacks. Answers with lists."""

    by_client = True
    less = 0

    def clear(self, book: Book) -> Clearing:
        first = np.unique(book.clients, return_index=True)[1]
        core = [0 if place in first else -1 for place in range(len(book.clients))]
        return Clearing(core, [bid - self.less for bid in book.bids.tolist()])  # type: ignore[arg-type]


class TooCheap(FirstServed):
    by_client = True
    less = 1


class BeginsAsThePapers(PayAsOffered):
    """A subclass may only begin as its parent does."""


@pytest.fixture
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    for kind in (FirstServed, TooCheap, BeginsAsThePapers):
        MECHANISMS.register(kind.__name__.lower(), kind)


@pytest.mark.usefixtures("plug_ins")
def test_a_mechanism_of_a_plug_in_may_clear_client_by_client() -> None:
    kinds_ = [plain(mechanism=("firstserved", {})), plain()]
    assert_equal_play(kinds_, [0, 1, 0], [3, 4, 5], np.random.default_rng(2))


@pytest.mark.usefixtures("plug_ins")
def test_a_mechanism_of_a_plug_in_that_breaks_a_rule_is_named() -> None:
    markets = Lockstep([factory(plain(mechanism=("toocheap", {})))] * 2, [0, 1])
    markets.open()
    with pytest.raises(
        ClearingError, match=r"^in lockstep, .* mechanism TooCheap\.clear\(\) .*: the price \S+ is below the bid"
    ):
        markets.close(offers_of((1, 0, 4, 15_000_000)))


def test_a_market_begins_again_while_the_others_play_on() -> None:
    make = factory(plain())
    markets = Lockstep([make, make], [1, 2])
    nobody = together([])
    for _ in range(2):
        markets.open()
        markets.close(nobody)
    markets.reset([1], [7])
    assert markets.round.tolist() == [2, 0]
    assert np.array_equal(markets.open().bids[1], Lockstep([make], [7]).open().bids[0])


def with_clients(**changes: Any) -> dict[str, Any]:
    return plain(population=changed(plain()["population"], **changes))


REFUSED = [
    (plain(mechanism=("vcg", {})), "does not clear client by client (mechanism VCG)"),
    (plain(mechanism=("beginsasthepapers", {})), "does not clear client by client (mechanism BeginsAsThePapers)"),
    (plain(interventions=[Change(2, rules=("uniform-price", {}))]), "changes its mechanism in the middle"),
    (plain(behaviour=("ring", {})), "has clients that need not tell the truth (behaviour Ring)"),
    (
        plain(timeline=Durations(0.01, 0.5, deadline=2.0, jitter=0.5)),
        "has a slot or a deadline, and jobs whose times vary",
    ),
    (
        {**with_clients(uploads=(1.0, 8.0)), "timeline": Durations(0.01, 0.0, slot=3.0)},
        "has a slot or a deadline, and jobs whose times vary",
    ),
    (with_clients(lasting=Lasting(0.5)), "has data that lasts from round to round (clients.lasting)"),
    (with_clients(concentration=1.0), "draws label mixes (clients.label_mix)"),
    (
        with_clients(partitions=(Partition("strokes", Iid(), 20),), everything=True, data_sizes=(600,)),
        "has clients that own their images (data.partition)",
    ),
    (with_clients(cost_noise=0.1), "has noise in its clients' costs (clients.cost.noise)"),
    (with_clients(disclosure=Disclosure(public_bids=False)), "hides bids or DQI from services"),
]


@pytest.mark.usefixtures("plug_ins")
@pytest.mark.parametrize(("kind", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_be_played_in_lockstep_is_refused_by_name(kind: dict[str, Any], why: str) -> None:
    with pytest.raises(LockstepError, match=f"^a market that {re.escape(why)}.* cannot be played in lockstep"):
        Lockstep([factory(kind)], [0])


def test_a_market_that_trains_models_is_refused(make_market: Callable[..., Market]) -> None:
    with pytest.raises(LockstepError, match=r"trains models cannot be played in lockstep; use training\.backend"):
        Lockstep([lambda seed: make_market(seed=seed)], [0])


@pytest.fixture
def open_market() -> Lockstep:
    markets = Lockstep([factory(plain())] * 2, [0, 1])
    markets.open()
    return markets


def offers_of(*rows: tuple[int, int, int, int]) -> Offers:
    return Offers(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(0, 0, 6, 9_000_000)], "an offer names a market, service or client that is not there"),
        ([(2, 0, 0, 9_000_000)], "an offer names a market, service or client that is not there"),
        ([(0, -1, 0, 9_000_000)], "an offer names a market, service or client that is not there"),
        ([(1, 2, 3, 1)], r"market 1, service 2, client 3: the payment is below the bid \(eq. 5\)"),
        ([(1, 0, 3, 9_000_000)] * 2, "market 1, service 0, client 3: a client can be offered only one payment"),
        ([(0, 1, 3, 2**62)] * 3, "market 0, service 1, client 3: the payment alone is over the budget"),
        (
            [(0, 1, 3, 15_000_000), (0, 1, 4, 15_000_000)],
            r"market 0, service 1: the payments add up to 30.000000, over the budget of 20.000000 \(eq. 4\)",
        ),
        (
            [(1, 0, 3, 9_000_000), (0, 0, 3, 9_000_000)],
            "market 0, service 0, client 3: offers must stand market by market, service by service",
        ),
    ],
)
def test_offers_that_break_a_constraint_are_refused(open_market: Lockstep, rows: Any, problem: str) -> None:
    with pytest.raises(LockstepOfferError, match=problem):
        open_market.close(offers_of(*rows))
    open_market.close(offers_of((0, 1, 3, 15_000_000)))  # the round is still open, and nothing has happened
    assert open_market.round.tolist() == [1, 1]


def test_a_round_is_closed_once_and_only_where_it_is_open(open_market: Lockstep) -> None:
    open_market.close(offers_of())
    for close in (open_market.close, open_market.play):
        with pytest.raises(LockstepError, match="no round is open"):
            close(offers_of())
    open_market.open()
    open_market.reset([0], [1])
    with pytest.raises(LockstepError, match="no round is open"):
        open_market.close(offers_of())


def test_each_market_has_one_seed(open_market: Lockstep) -> None:
    with pytest.raises(ValueError, match="one seed for each market: 1 markets, 2 seeds"):
        Lockstep([factory(plain())], [0, 1])
    with pytest.raises(ValueError, match="one seed for each market: 2 markets, 1 seeds"):
        open_market.reset([0, 1], [5])
