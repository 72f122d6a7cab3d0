"""Mechanisms held against the formulas and worked examples of the papers that they name; docs/fidelity.md lists them.

What a formula says is computed here by the source's definition, over all sets or all bids, not as the rule does it.
"""

from collections.abc import Callable, Sequence
from itertools import chain, combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import NO_CORE
from des.market import Market
from des.mechanism import MECHANISMS, Book, clearing_of
from des.mechanisms.fair_queue import FairQueue
from des.mechanisms.proportional_share import procure
from des.mechanisms.score_auction import auction
from des.mechanisms.vcg import SIDES, VCG
from des.money import MICRO
from des.observation import Offer
from support.books import book_of
from support.tiers import examples


def sets_of(offers: int) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(offers), size) for size in range(offers + 1))


def best(book: Book, worth: Sequence[float], present: Sequence[bool]) -> float:
    """Return the highest sum of worth of a set of the offers present that keeps K and the budgets."""
    sums = [0.0]
    for chosen in map(list, sets_of(len(book.clients))):
        served = np.bincount(book.clients[chosen], minlength=1)
        spent = np.bincount(book.services[chosen], book.payments[chosen], len(book.budgets))
        if all(present[at] for at in chosen) and (served <= book.cores).all() and (spent <= book.budgets).all():
            sums.append(sum(worth[at] for at in chosen))
    return max(sums)


# ---- vcg: Clarke (1971)


@pytest.mark.parametrize("side", SIDES)
@examples(15)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6, unique=True),
    data=st.data(),
)
def test_clarke_s_payments_are_what_a_party_s_presence_is_worth_to_all(side: str, pairs: Any, data: Any) -> None:
    """A client gains W - W(without it); a service pays W(without it) less what the others have with it.

    W is the highest joint surplus of all sets. The solver keeps its constraints to some micro-units.
    """
    numbers = st.lists(st.integers(0, 6), min_size=len(pairs), max_size=len(pairs))
    bids, more = data.draw(numbers), data.draw(numbers)
    offers = [(m, c, bid + extra, bid) for (m, c), bid, extra in zip(pairs, bids, more, strict=True)]
    book = book_of(*offers, budgets=data.draw(st.lists(st.integers(3, 15), min_size=3, max_size=3)))
    surplus, everybody = (book.payments - book.asks).tolist(), [True] * len(pairs)
    clearing = clearing_of(VCG(side=side), book, 1)
    served = clearing.core != NO_CORE
    parties = book.clients if side == "clients" else book.services
    whole = best(book, surplus, everybody)
    for party in set(parties.tolist()):
        own = served & (parties == party)
        without = best(book, surplus, (parties != party).tolist())
        above_bids = int((clearing.price - book.asks)[own].sum())
        others = whole - int((book.payments - book.asks)[own].sum())
        expected = whole - without if side == "clients" else without - others
        assert above_bids == pytest.approx(expected, abs=20)


def test_for_one_client_a_service_pays_clarke_what_vickrey_asks() -> None:
    """One core, offers of 9, 7 and 4 at a bid of 1: the first pays 7."""
    book = book_of((0, 0, 9, 1), (1, 0, 7, 1), (2, 0, 4, 1))
    for name, options in (("vcg", {"side": "services"}), ("uniform-price", {})):
        clearing = clearing_of(MECHANISMS.create(name, **options), book, 1)
        assert clearing.price[clearing.core != NO_CORE].tolist() == pytest.approx([7 * MICRO], abs=20)


# ---- proportional-share: Singer (2010)

GRID = 120  # bids are tried in steps of 1 / GRID of a value


def picked_by_singer(bids: Sequence[float], values: Sequence[int], budget: int) -> list[int]:
    """Those with the lowest bid per value, as far as the bid of each is within its share of the budget."""
    order = sorted(range(len(bids)), key=lambda i: bids[i] / values[i])
    taken: list[int] = []
    for i in order:
        if bids[i] * (sum(values[j] for j in taken) + values[i]) > budget * values[i]:
            break
        taken.append(i)
    return taken


@given(
    clients=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=5),
    budget=st.integers(1, 40),
)
def test_a_winner_is_promised_singer_s_threshold_or_its_value(clients: list[tuple[int, int]], budget: int) -> None:
    """The threshold is the highest bid at which the rule would still pick the client: bids in small steps are tried."""
    values, bids = [value for value, _ in clients], [min(pair) for pair in clients]
    # Of equal bids per value either may be first: let them differ by a little.
    near = [bid + 1e-3 * at for at, bid in enumerate(bids)]
    won, price = procure(np.array([round(it * MICRO) for it in near]), np.array(values) * MICRO, budget * MICRO)
    assert won.nonzero()[0].tolist() == sorted(picked_by_singer(near, values, budget))
    for i in won.nonzero()[0].tolist():

        def still_picked(bid: float, at: int = i) -> bool:
            return at in picked_by_singer([*near[:at], bid, *near[at + 1 :]], values, budget)

        low, high = near[i], float(budget + 1)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if still_picked(middle) else (low, middle)
        assert price[i] / MICRO == pytest.approx(min(low, values[i]), abs=1e-5)


def test_singer_s_threshold_is_cut_at_what_the_winner_is_worth() -> None:
    """Alone, worth 3 and with a budget of 12, it would be picked up to a bid of 12; it is promised 3."""
    assert picked_by_singer([12], [3], 12) == [0]
    assert procure(np.array([1 * MICRO]), np.array([3 * MICRO]), 12 * MICRO)[1].tolist() == [3 * MICRO]


# ---- score-auction: Che (1993)

TYPES = (np.arange(40) + 0.5) / 40
"""Costs of a bidder, as if drawn from 0 to 1 uniformly."""


def earned(bid: float, cost: float, rival: Callable[[float], float], *, second: bool) -> float:
    """Return what a bidder earns in the mean against one rival; both are worth 2, one of them is bought."""
    value, gains = np.array([2, 2]) * MICRO, []
    for other in TYPES.tolist():
        asked = np.round(np.array([bid, rival(other)]) * MICRO).astype(np.int64)
        first = np.argsort(asked, kind="stable")
        won, paid = auction(value[first], asked[first], 99 * MICRO, 1, second=second)
        gains.append(float(paid[0]) / MICRO - cost if first[won[0]] == 0 else 0.0)
    return float(np.mean(gains))


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_che_s_equilibrium_of_first_scores_is_a_best_response(cost: float) -> None:
    """Two bidders: p(c) = c + integral of (1 - F(t)) / (1 - F(c)) from c to 1 = (1 + c) / 2, for F uniform."""
    tried = np.arange(cost, 1.2, 0.05) + 1e-3
    gains = [earned(bid, cost, lambda other: (1 + other) / 2, second=False) for bid in tried.tolist()]
    assert tried[int(np.argmax(gains))] == pytest.approx((1 + cost) / 2, abs=0.05)


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_at_second_scores_the_cost_is_a_best_response(cost: float) -> None:
    honest = earned(cost, cost, lambda other: other, second=True)
    assert all(earned(bid, cost, lambda other: other, second=True) <= honest for bid in (0.1, 0.4, 0.6, 0.9))


def test_first_and_second_scores_cost_the_buyer_the_same_in_equilibrium() -> None:
    """Che's revenue equivalence: for two costs from 0 to 1, the mean of the higher one, 2 / 3."""
    paid: dict[bool, list[float]] = {False: [], True: []}
    for one in TYPES.tolist():
        for other in TYPES.tolist():
            for second in paid:
                bids = np.array([one, other]) if second else (1 + np.array([one, other])) / 2
                asked = np.sort(np.round(bids * MICRO).astype(np.int64))
                price = auction(np.array([2, 2]) * MICRO, asked, 99 * MICRO, 1, second=second)[1]
                paid[second].append(float(price[0]) / MICRO)
    assert np.mean(paid[False]) == pytest.approx(2 / 3, abs=0.01)
    assert np.mean(paid[True]) == pytest.approx(2 / 3, abs=0.01)


# ---- fair-queue: drift plus penalty


@examples(25)
@given(
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), unique=True, min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_served_has_the_highest_sum_of_backlog_and_weighted_payments(rounds: Any) -> None:
    """Of all sets that keep K: the choice of drift plus penalty. Then queues grow by what is owed, less what is served.

    Payments of 1 to 3 are weighed by 1 / 2.
    """
    mechanism = FairQueue(weight=0.5)
    for offers in rounds:
        book = book_of(*((m, c, 1.0 + m) for m, c in offers))
        queues = mechanism.state()["queues"] or [0, 0, 0]
        index = [queues[m] + 0.5 * (1 + m) * MICRO for m, _ in offers]
        clearing = clearing_of(mechanism, book, 1)
        served = clearing.core != NO_CORE
        unlimited = book_of(*((m, c, 1.0 + m) for m, c in offers), budgets=(99, 99, 99))
        assert sum(np.array(index)[served]) == pytest.approx(best(unlimited, index, [True] * len(offers)))
        mechanism.close(book, clearing)


# ---- iterated: Gale and Shapley (1962)

# Their example with one stable set of marriages: a row for each man and a column for each woman, with his rank of her
# and hers of him.
RANKS = [
    [(1, 3), (2, 3), (3, 2), (4, 3)],
    [(1, 4), (4, 1), (3, 3), (2, 2)],
    [(2, 2), (1, 4), (3, 4), (4, 1)],
    [(4, 1), (2, 2), (3, 1), (1, 4)],
]


def is_stable(wife: Sequence[int]) -> bool:
    """Whether no two prefer each other to those whom they have."""
    husband = [wife.index(woman) for woman in range(4)]
    return not any(
        RANKS[man][woman][0] < RANKS[man][wife[man]][0] and RANKS[man][woman][1] < RANKS[husband[woman]][woman][1]
        for man in range(4)
        for woman in range(4)
    )


def test_offers_that_are_iterated_end_in_the_stable_marriages_of_gale_and_shapley(
    make_market: Callable[..., Market],
) -> None:
    """Services offer in the order of their preferences, more to clients that prefer them; there is one stable set."""
    [stable] = [wife for wife in permutations(range(4)) if is_stable(wife)]
    names = ["alpha", "beta", "gamma", "delta"]
    market = make_market(names, mechanism=MECHANISMS.create("iterated", steps=16), count=4, cores=1)
    wishes = {name: sorted(range(4), key=lambda woman, m=m: RANKS[m][woman][0]) for m, name in enumerate(names)}
    asked = market.open_round()
    while asked:
        offers = {}
        for name in asked:
            client = wishes[name].pop(0)
            offers[name] = Offer(np.array([client]), np.array([10.0 - RANKS[names.index(name)][client][1]]))
        asked = market.offer(offers)
    served = {row.service: row.client for row in market.close_round().offers if row.outcome == "served"}
    assert served == dict(zip(names, stable, strict=True))
    assert stable == (2, 3, 0, 1)
