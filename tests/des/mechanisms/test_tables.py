"""Each mechanism with a few offers, worked out by hand: who serves whom, at which price; and its contracts and options.

A row is an offer: service and client, what is offered and what the client asks (``bid``), and behind the bar what is
paid in each round in which the same is offered again; ``-`` where the offer is refused. Every client holds 100 images.
Ties go to the service of the lower name, unless a table has ``draws``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from des.mechanism import MECHANISMS, Mechanism, asks_of, clearing_of
from des.money import MICRO, to_micro
from flmarket.core.plugin_options import OptionsError
from flmarket.testing import check_mechanism
from support.books import book_of, prices_paid
from support.tiers import slow

IMAGES = 100
SERVICES = ["alpha", "beta", "gamma"]


@dataclass(frozen=True)
class Table:
    mechanism: str  # its name
    shows: str  # what the table shows
    rows: str
    cores: int = 1  # K
    budgets: Sequence[float] = (20, 20, 20)
    draws: Sequence[float] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.mechanism}: {self.shows}"

    @property
    def offers(self) -> list[tuple[int, int, float, float]]:
        """Service, client, offer and bid of each row."""
        cells = [row.partition("|")[0].split() for row in self.rows.strip().splitlines()[1:]]
        return [(SERVICES.index(name), int(client), float(offer), float(bid)) for name, client, offer, bid in cells]

    @property
    def rounds(self) -> list[list[float | None]]:
        """What each offer pays, round by round."""
        cells = [row.partition("|")[2].split() for row in self.rows.strip().splitlines()[1:]]
        return [[None if cell == "-" else float(cell) for cell in column] for column in zip(*cells, strict=True)]

    def play(self, mechanism: Mechanism, round_: int) -> list[float | None]:
        """Play a round as a market does: the mechanism asks, clears and takes note."""
        bids = np.full((len(SERVICES), 4), 10**12)
        for m, client, _, bid in self.offers:
            bids[m, client] = to_micro(bid)
        asks = asks_of(mechanism, bids, np.full(bids.shape, IMAGES), round_)
        able = [offer for offer in self.offers if asks.willing is None or asks.willing[offer[:2]]]
        least = [asks.least[offer[:2]] / MICRO for offer in able]
        book = book_of(*able, cores=self.cores, budgets=self.budgets, ask=least, draws=self.draws)
        paid = iter(prices_paid(mechanism, book))
        mechanism.close(book, clearing_of(mechanism, book, round_))
        return [next(paid) if offer in able else None for offer in self.offers]


TABLES = [
    Table("pay-as-offered", "the highest payment wins each client, and is paid", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 6
        beta     0       5      2    | -
        beta     1       3      3    | 3
        """),
    Table("pay-as-offered", "a client serves as many as it has cores", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 6
        beta     0       4      2    | -
        gamma    0       5      2    | 5
        """, cores=2),
    Table("pay-as-offered", "with more cores than services all are served", """
        service  client  offer  bid  | paid
        alpha    0       2.1    2.1  | 2.1
        beta     0       3      2.1  | 3
        """, cores=9),
    Table("pay-as-offered", "a draw breaks ties, the lower number first", """
        service  client  offer  bid  | paid
        alpha    0       5      2    | -
        beta     0       5      2    | 5
        """, draws=(0.2, 0.1, 0.3)),
    Table("iterated", "in each step the highest payments are kept", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 6
        beta     0       5      2    | -
        beta     1       3      3    | 3
        """),
    Table("uniform-price", "winners pay the best losing offer of the same client", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 4
        beta     0       5      2    | 4
        gamma    0       4      2    | -
        gamma    1       9      2    | 2
        """, cores=2),
    Table("uniform-price", "and at least the bid to each service", """
        service  client  offer  bid  | paid
        alpha    0       6      5    | 5
        beta     0       5      2    | 4
        gamma    0       4      2    | -
        """, cores=2),
    Table("posted-price", "who asks for more than 100 * 0.03 does not serve", """
        service  client  offer  bid  | paid
        alpha    0       3      2    | 3
        alpha    1       9      4    | -
        """, options={"price_per_sample": 0.03}),
    # By draws alone, a client would gain by asking too much of the services that cost it the most.
    Table("posted-price", "a client serves those that leave it the most, whatever they offer and the draws say", """
        service  client  offer  bid  | paid
        alpha    0       9      0.9  | -
        beta     0       1      0.2  | 1
        gamma    0       1      0.5  | 1
        """, cores=2, draws=(0.1, 0.2, 0.3), options={"price_per_sample": 0.01}),
    Table("posted-price", "draws decide between equal bids", """
        service  client  offer  bid  | paid
        alpha    0       9      0.5  | -
        beta     0       1      0.5  | 1
        """, draws=(0.2, 0.1, 0.3), options={"price_per_sample": 0.01}),
    # Half of the offers are refused, no core is idle: 3 * (1 + 0.5 / 2), and once more, but for ``most``.
    Table("posted-price", "the price rises with offers that are refused", """
        service  client  offer  bid  | 1  2     3
        alpha    0       9      2    | 3  3.75  4
        beta     0       9      2    | -  -     -
        """, options={"price_per_sample": 0.03, "step": 0.5, "most": 0.04}),
    # Half of the cores are idle, so it falls by a quarter, twice; at 1.6875 nobody serves, and it rises by half.
    Table("posted-price", "it falls with cores that are idle, and rises if nobody serves", """
        service  client  offer  bid  | 1  2     3  4
        alpha    0       9      2    | 3  2.25  -  2.5312
        """, cores=2, options={"price_per_sample": 0.03, "step": 0.5}),
    # The second: 4 <= 12 * 6 / 12. The third: 5 > 12 * 6 / 18. The two get min(12 / 12, 5 / 6) for a unit of value.
    Table("proportional-share", "clients are bought that fit into shares of the budget (Singer)", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 5
        alpha    1       6      4    | 5
        alpha    2       6      5    | -
        """, budgets=(12, 0, 0)),
    Table("proportional-share", "no more is promised than the value", """
        service  client  offer  bid  | paid
        alpha    0       3      1    | 3
        """, budgets=(12, 0, 0)),
    Table("proportional-share", "who is worth nothing and asks for nothing is picked", """
        service  client  offer  bid  | paid
        alpha    0       0      0    | 0
        alpha    1       2      1    | 2
        """, budgets=(2, 0, 0)),
    Table("proportional-share", "a client serves who leaves it the most, not who promises the most", """
        service  client  offer  bid  | paid
        alpha    0       9      8    | -
        beta     0       7      1    | 7
        """),
    Table("score-auction", "first scores pay the bids of the best scores: 4, 3, 1 and 0.5", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 2
        alpha    1       5      2    | 2
        alpha    2       2      1    | 1
        alpha    3       3      2.5  | -
        """, budgets=(5, 0, 0), options={"payment": "first-score"}),
    Table("score-auction", "whose bid no longer fits into the budget is passed over", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 2
        alpha    1       5      2    | 2
        alpha    2       2      1    | -
        alpha    3       1      0.5  | 0.5
        """, budgets=(4.5, 0, 0), options={"payment": "first-score"}),
    Table("score-auction", "second scores leave winners what they are better than the best loser: 1", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 5
        alpha    1       5      2    | 4
        alpha    2       2      1    | -
        alpha    3       3      2.5  | -
        """, budgets=(9, 0, 0)),
    Table("score-auction", "with more money three win, the best loser has 0.5", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 5.5
        alpha    1       5      2    | 4.5
        alpha    2       2      1    | 1.5
        alpha    3       3      2.5  | -
        """, budgets=(11.5, 0, 0)),
    Table("score-auction", "where nobody loses, all are promised their value", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | 6
        alpha    1       5      2    | 5
        alpha    2       2      1    | 2
        alpha    3       3      2.5  | 3
        """, budgets=(16, 0, 0)),
    Table("score-auction", "whose bid alone is over the budget takes no part", """
        service  client  offer  bid  | paid
        alpha    0       6      2    | -
        alpha    1       5      2    | -
        alpha    2       2      1    | 1.5
        alpha    3       3      2.5  | -
        """, budgets=(1.5, 0, 0)),
    Table("score-auction", "a client serves who leaves it the most", """
        service  client  offer  bid  | paid
        alpha    0       4      1    | -
        beta     0       5      1    | 5
        """),
    # Without client 0 the joint surplus falls from 5 + 4 to 4: it gets its bid and that 5.
    Table("vcg", "clients get what they add to the joint surplus", """
        service  client  offer  bid  | paid
        alpha    0       6      1    | 6
        beta     1       5      1    | 5
        """),
    # Beta values client 0 less than alpha does, but alpha's budget of 6 is for one client, and beta has no other. Of
    # 4.5 + 4 there is left 4.5 without client 0, and 5 (alpha's for client 0) without client 1.
    Table("vcg", "the highest joint surplus within the budgets is served", """
        service  client  offer  bid  | paid
        alpha    0       6      1    | -
        alpha    1       5.5    1    | 4.5
        beta     0       5      1    | 5
        """, budgets=(6, 6, 0)),
    # Alpha's being there costs beta a surplus of 3; nobody else wants client 1.
    Table("vcg", "services pay what their being there costs the others", """
        service  client  offer  bid  | paid
        alpha    0       6      1    | 4
        beta     0       4      1    | -
        beta     1       5      1    | 1
        """, options={"side": "services"}),
    # No surplus, but nothing is gained by leaving cores idle. Draws decide between alpha and beta.
    Table("vcg", "who asks for what is offered serves", """
        service  client  offer  bid  | paid
        alpha    0       2      2    | 2
        beta     0       2      2    | -
        beta     1       2      2    | 2
        """, draws=(0.3, 0.2, 0.1)),
    # Each is owed half a client a round: beta's queue is 0.5, then 1, and 1 + 0.6 * 2 > 0.6 * 3. Then both have 0.5.
    Table("fair-queue", "a backlog outweighs money by its weight", """
        service  client  offer  bid  | 1  2  3  4
        alpha    0       3      0    | 3  3  -  3
        beta     0       2      0    | -  -  2  -
        """, options={"weight": 0.6}),
    # A draw, not money, decides.
    Table("scheduler", "an order of the platform takes no notice of payments", """
        service  client  offer  bid  | paid
        alpha    0       9      1    | -
        beta     0       2      1    | 2
        """, options={"order": "random"}, draws=(0.3, 0.2)),
    Table("fair-queue", "without weight the longest queue goes first", """
        service  client  offer  bid  | 1  2  3  4
        alpha    0       9      0    | 9  -  9  -
        beta     0       0      0    | -  0  -  0
        """, options={"weight": 0}),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_round_is_cleared_as_it_was_worked_out_by_hand(table: Table) -> None:
    mechanism = MECHANISMS.create(table.mechanism, **table.options)
    assert [table.play(mechanism, n) for n in range(1, len(table.rounds) + 1)] == table.rounds


def test_every_mechanism_has_a_table() -> None:
    assert {table.mechanism for table in TABLES} == set(MECHANISMS.builtin)


# vcg solves a program for each winner, and takes a quarter of a minute
@pytest.mark.parametrize("name", [name if name != "vcg" else slow(name)[0] for name in MECHANISMS.builtin])
def test_every_mechanism_keeps_its_contracts(name: str) -> None:
    options = {"posted-price": {"price_per_sample": 0.03, "step": 0.5}, "scheduler": {"order": "venn"}}
    check_mechanism(MECHANISMS.load(name), **options.get(name, {}))


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("posted-price", {}, "needs the option 'price_per_sample'"),
        ("posted-price", {"price_per_sample": 2, "most": 1}, "price_per_sample must be between least and most, not 2"),
        ("posted-price", {"price_per_sample": 0.1, "step": 1}, "step must be a number of at least 0 and below 1"),
        ("posted-price", {"price_per_sample": "x"}, "price_per_sample must be a number from 0 to 1e+06, not 'x'"),
        ("posted-price", {"price_per_sample": 0.1, "most": {"a": 1}}, "most must be a number from 0 to 1e+06, not"),
        ("posted-price", {"price_per_sample": 0.0123456}, "price_per_sample has more than six decimals: 0.0123456"),
        ("iterated", {"steps": 0}, "steps must be a whole number from 1 to 1000, not 0"),
        ("iterated", {"steps": True}, "steps must be a whole number from 1 to 1000, not True"),
        ("iterated", {"steps": 3.0}, "steps must be a whole number from 1 to 1000, not 3.0"),
        ("vcg", {"side": "both"}, "side must be clients or services, not 'both'"),
        ("scheduler", {}, "needs the option 'order'"),
        ("scheduler", {"order": "lifo"}, "order must be random or fifo or srsf or venn, not 'lifo'"),
        ("uniform-price", {"price": 1}, "takes no option 'price'"),
        ("score-auction", {"payment": "third"}, "payment must be first-score or second-score, not 'third'"),
        *(
            ("fair-queue", {"weight": weight}, "weight must be a number from 0 to 1000")
            for weight in (-1, 1001, float("nan"), "much", True)
        ),
    ],
)
def test_impossible_options(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionsError) as caught:
        MECHANISMS.create(name, **options)
    assert problem in str(caught.value)
